{{/* Whether the API server itself isolates: "true", or empty where the webhook has to. */}}
{{- define "gpumem.isolatesNatively" -}}
{{- $native := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- if or (eq .Values.isolation.by "Policy") (and (eq .Values.isolation.by "Auto") $native) -}}
true
{{- end -}}
{{- end }}

{{/* CEL: does container `c` ask for no GPU, and is it not yet kept away from all of them? */}}
{{- define "gpumem.seesDevices" -}}
(!c.?resources.limits.orValue({}).exists(r,
    (r in ["nvidia.com/gpu", "nvidia.com/gpu.shared"] || r.startsWith('nvidia.com/mig-'))
    && string(c.resources.limits[r]) != '0')
  && !(c.?env.orValue([]).filter(e, e.name == 'NVIDIA_VISIBLE_DEVICES').map(e, e.?value.orValue(''))
    in [['void'], ['none']]))
{{- end }}

{{/* CEL: the containers of one list that have to be kept away. Call with the list's name. */}}
{{- define "gpumem.isolationPatches" -}}
lists.range(object.spec.?{{ . }}.orValue([]).size())
  .filter(i, [object.spec.{{ . }}[i]].exists(c, {{ include "gpumem.seesDevices" . }}
    {{- if eq . "ephemeralContainers" }}
    && !oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == c.name)
    {{- end }}))
  .map(i, JSONPatch{
    op: "add",
    path: "/spec/{{ . }}/" + string(i) + "/env",
    value: [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
      + object.spec.{{ . }}[i].?env.orValue([]).filter(e, e.name != 'NVIDIA_VISIBLE_DEVICES')
  })
{{- end }}

{{- define "gpumem.isolatedNamespaces" -}}
matchExpressions:
  - key: gpumemory.dev/isolate
    operator: In
    values: ["true"]
{{- end }}
