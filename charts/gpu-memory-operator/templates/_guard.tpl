{{/* matchConditions of every guard: who is never asked. */}}
{{- define "gpumem.guardExemptions" -}}
- name: not-break-glass
  expression: |
    !request.userInfo.?groups.orValue([]).exists(g, g in {{ .Values.guard.breakGlassGroups | default list | toJson }})
{{- end }}

{{/* CEL: is the user the operator's own? Call with (dict "root" $ "roles" (list "controller")). */}}
{{- define "gpumem.isOperator" -}}
{{- $names := list }}
{{- range .roles }}
{{- $names = append $names (printf "system:serviceaccount:%s:%s-%s" $.root.Release.Namespace (include "gpumem.fullname" $.root) .) }}
{{- end -}}
request.userInfo.username in {{ $names | toJson }}
{{- end }}

{{/* CEL: may the user say what limits pods what limits pods, in the whole cluster? */}}
{{- define "gpumem.mayManage" -}}
authorizer.group('gpumemory.dev').resource('gpumemorypolicies').check('manage').allowed()
{{- end }}

{{- define "gpumem.breakGlassHint" -}}
in an emergency, act as a member of {{ .Values.guard.breakGlassGroups | default list | join " or " | default "a group that guard.breakGlassGroups names (none is set)" }}
{{- end }}

{{/* The binding of a guard. Call with (dict "root" $ "guard" "policies"), and a "paramRef". */}}
{{- define "gpumem.guardBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "gpumem.fullname" .root }}-{{ .guard }}
  labels:
    {{- include "gpumem.labels" .root | nindent 4 }}
spec:
  policyName: {{ include "gpumem.fullname" .root }}-{{ .guard }}
  {{- with .paramRef }}
  paramRef:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  validationActions: [Deny]
{{- end }}
