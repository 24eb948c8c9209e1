{{/*
CEL: is `object` a GPU pod? True where any container, init and ephemeral ones included, has a limit
for a GPU resource or the memory resource, or sets NVIDIA_VISIBLE_DEVICES to something other than
void or none. A variable by valueFrom has no value, so it counts; so does an empty one, which the
API server stores without a value too.

Every step that may be absent is optional (`.?`): with failurePolicy Fail, an error in this
expression refuses the pod. Limits are enough, because the API server demands one beside every
request for an extended resource.

The lists have types of their own, and the API server's type checker warns about policies that add
them as they are: hence `dyn`.
*/}}
{{- define "gpumem.isGpuPod" -}}
(dyn(object.spec.containers)
  + dyn(object.spec.?initContainers.orValue([]))
  + dyn(object.spec.?ephemeralContainers.orValue([]))).exists(c,
    c.?resources.limits.orValue({}).exists(r, {{ include "gpumem.isCounted" . }})
    || c.?env.orValue([]).exists(e,
      e.name == 'NVIDIA_VISIBLE_DEVICES'
      && !(e.?value.orValue('') in ['void', 'none'])))
{{- end }}

{{/* CEL: is resource `r` one that makes a GPU pod? What is asked for by it is counted. */}}
{{- define "gpumem.isCounted" -}}
r in {{ list "nvidia.com/gpu" "nvidia.com/gpu.shared" .Values.memoryResource | toJson }} || r.startsWith('nvidia.com/mig-')
{{- end }}

{{/*
CEL: could `object` take a GPU by dynamic resource allocation, which nobody counts? Either by a claim, or by an extended
resource that a DeviceClass stands behind: under the name that every class has, or under one that
the class was given, which can be any name of another domain than kubernetes.io. Which class that is
only the API server knows, so the webhook reads it. Requests, because the API server takes the first
kind without a limit, and writes a request beside every limit before anyone is asked.
*/}}
{{- define "gpumem.mayTakeDevices" -}}
{{- $implicit := list -}}
{{- range .Values.gpuDeviceClasses -}}
{{- $implicit = append $implicit (printf "deviceclass.resource.kubernetes.io/%s" .) -}}
{{- end -}}
object.spec.?resourceClaims.orValue([]).size() > 0
|| (object.spec.containers + object.spec.?initContainers.orValue([])).exists(c,
  c.?resources.requests.orValue({}).exists(r,
    r.contains('/') && (!r.contains('kubernetes.io/') || r in {{ $implicit | toJson }})
    && !({{ include "gpumem.isCounted" . }})))
{{- end }}

{{/* Where the API server finds one hook. Call with (dict "root" $ "path" "mutate-pod"). */}}
{{- define "gpumem.clientConfig" -}}
{{- $values := .root.Values -}}
{{- if $values.webhook.url }}
url: {{ printf "%s/%s" (trimSuffix "/" $values.webhook.url) .path | quote }}
{{- else }}
service:
  name: {{ include "gpumem.fullname" .root }}-webhook
  namespace: {{ .root.Release.Namespace }}
  path: /{{ .path }}
  port: 443
{{- end }}
{{- if eq $values.certificates.mode "Provided" }}
caBundle: {{ required "certificates.caBundle is empty, but certificates.mode is Provided: give the PEM of the CA" $values.certificates.caBundle | b64enc }}
{{- end }}
{{- end }}

{{/* The name that the API server expects in the webhook's certificate. */}}
{{- define "gpumem.webhookHost" -}}
{{- if .Values.webhook.url -}}
{{ (urlParse .Values.webhook.url).hostname }}
{{- else -}}
{{ include "gpumem.fullname" . }}-webhook.{{ .Release.Namespace }}.svc
{{- end -}}
{{- end }}

{{- define "gpumem.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ include "gpumem.ignoredNamespaces" . }}
  - key: gpumemory.dev/ignore
    operator: NotIn
    values: ["true"]
{{- end }}
