{{/*
The pod of one role. Call with (dict "root" $ "role" "webhook" "values" .Values.webhook
"args" (list ...) "ports" (list (dict "name" ... "containerPort" ...)) "healthPort" 8081
"hostNetwork" false).
*/}}
{{- define "gpumem.podTemplate" -}}
{{- $values := .root.Values -}}
metadata:
  annotations:
    # The processes read their settings once, so a change of them starts new ones.
    checksum/settings: {{ include "gpumem.settings" .root | sha256sum }}
    {{- if $values.metrics.annotations }}
    prometheus.io/scrape: "true"
    prometheus.io/port: {{ .healthPort | quote }}
    prometheus.io/path: /metrics
    {{- end }}
  labels:
    {{- include "gpumem.selectorLabels" . | nindent 4 }}
spec:
  serviceAccountName: {{ include "gpumem.fullname" .root }}-{{ .role }}
  {{- with $values.operator.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.operator.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.operator.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.operator.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    podAntiAffinity:
      # Preferred, not required: a cluster of one node gets its replicas too. On the network of nodes
      # the scheduler keeps two from one node by their ports; a rule of pods that are there would keep
      # out those of the next release too, which may be elsewhere.
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "gpumem.selectorLabels" . | nindent 16 }}
  {{- if .hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  enableServiceLinks: false
  # The webhook goes on answering for some seconds, until every API server knows that it is going.
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    {{- with $values.operator.runAsUser }}
    runAsUser: {{ int64 . }}
    runAsGroup: {{ int64 . }}
    fsGroup: {{ int64 . }}
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .role }}
      image: {{ $values.operator.image }}
      imagePullPolicy: {{ $values.operator.pullPolicy }}
      args:
        - --role={{ .role }}
        - --settings=/etc/gpumem/settings.yaml
        - --namespace={{ .root.Release.Namespace }}
        {{- range .args }}
        - {{ . }}
        {{- end }}
        - --health-port={{ .healthPort }}
      env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
      ports:
        {{- range .ports }}
        - name: {{ .name }}
          containerPort: {{ .containerPort }}
        {{- end }}
        - name: health
          containerPort: {{ .healthPort }}
      # Alive: the process's loop turns. Whether the API server answers is no part of it, so that
      # an outage there does not restart every replica here.
      livenessProbe:
        httpGet:
          path: /healthz
          port: health
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: health
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 3
      # Reading the caches of a large cluster for the first time may take a while.
      startupProbe:
        httpGet:
          path: /healthz
          port: health
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 60
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: settings
          mountPath: /etc/gpumem
          readOnly: true
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: settings
      configMap:
        name: {{ include "gpumem.fullname" .root }}-settings
    - name: tmp
      emptyDir:
        sizeLimit: 16Mi
{{- end }}
