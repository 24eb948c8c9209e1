{{- define "gpumem.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "gpumem.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Labels that select the pods of one role. Call with (dict "root" $ "role" "webhook"). */}}
{{- define "gpumem.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "gpumem.caSecret" -}}
{{ include "gpumem.fullname" . }}-ca
{{- end }}

{{- define "gpumem.sealSecret" -}}
{{ include "gpumem.fullname" . }}-seal
{{- end }}

{{- define "gpumem.nodesConfigMap" -}}
{{ include "gpumem.fullname" . }}-nodes
{{- end }}

{{- define "gpumem.certSecret" -}}
{{- if eq .Values.certificates.mode "Provided" -}}
{{ required "certificates.secretName is empty, but certificates.mode is Provided: name the Secret with tls.crt, tls.key and ca.crt" .Values.certificates.secretName }}
{{- else -}}
{{ include "gpumem.fullname" . }}-webhook-cert
{{- end -}}
{{- end }}

{{/* Namespaces that admission leaves out: the configured ones and the release's own. */}}
{{- define "gpumem.ignoredNamespaces" -}}
{{- append (.Values.ignoredNamespaces | default list) .Release.Namespace | uniq | toJson -}}
{{- end }}

{{/* What the processes read: exactly the fields of gpumem_operator.api.values.Values. */}}
{{- define "gpumem.settings" -}}
{{- $read := pick .Values "memoryResource" "exclusiveResources" "foreignManagers" "resourceClaims" "gpuDeviceClasses" "sidecar" "monitoring" "scheduling" "driverLimits" "report" "runVolumeSize" -}}
{{- $ignored := dict "ignoredNamespaces" (include "gpumem.ignoredNamespaces" . | fromJsonArray) -}}
{{- $report := dict "report" (dict "url" (include "gpumem.reportUrl" .) "ca" .Values.report.ca) -}}
{{- /* A list that somebody took away by null is an empty one, in no case the processes' default. */}}
{{- $lists := dict -}}
{{- range list "exclusiveResources" "foreignManagers" "gpuDeviceClasses" -}}
{{- $_ := set $lists . (index $.Values . | default list) -}}
{{- end -}}
{{- /* By null the user is left to the cluster, and Helm drops what is null. */}}
{{- $sidecar := deepCopy .Values.sidecar -}}
{{- if not $sidecar.runAsUser -}}
{{- $_ := set $sidecar "runAsUser" nil -}}
{{- end -}}
{{ merge $report $ignored $lists (dict "sidecar" $sidecar) $read | toYaml }}
{{- end }}

{{/* The DNS name of the Service that leads to the leader of the controllers. */}}
{{- define "gpumem.reportHost" -}}
{{ include "gpumem.fullname" . }}-report.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Where sidecars send reports. Without our Deployments there is no Service to send them to. */}}
{{- define "gpumem.reportUrl" -}}
{{- if or .Values.report.url (not .Values.operator.deploy) -}}
{{ .Values.report.url }}
{{- else -}}
https://{{ include "gpumem.reportHost" . }}/v1/reports
{{- end -}}
{{- end }}
