{{- define "celld.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "celld.selector" -}}
app.kubernetes.io/name: celld
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "celld.labels" -}}
{{ include "celld.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "celld.secret" -}}
{{- .Values.auth.existingSecret | default (include "celld.fullname" .) }}
{{- end }}

{{- /* What cannot work is an error here, and not in the pod's log. */ -}}
{{- define "celld.check" -}}
{{- $v := .Values }}
{{- if and (eq $v.mode "sidecar") (not $v.app) }}{{ fail "mode sidecar needs app: your app's container" }}{{ end }}
{{- if and (gt (int $v.replicas) 1) (eq $v.mode "deployment") (not $v.engine.url) }}{{ fail "replicas above 1 need engine.url: each replica has limits of its own otherwise" }}{{ end }}
{{- if and $v.persistence.enabled $v.engine.url }}{{ fail "persistence and engine.url exclude each other: the engine keeps the limits" }}{{ end }}
{{- if and $v.persistence.enabled (gt (int $v.replicas) 1) }}{{ fail "persistence is for one replica: one process at a time uses a directory" }}{{ end }}
{{- if and (eq $v.mode "deployment") (not $v.auth.existingSecret) (not $v.auth.password) (not $v.auth.acl.existingSecret) }}{{ fail "mode deployment needs auth.existingSecret or auth.password: strangers could ask it otherwise" }}{{ end }}
{{- if and $v.http.enabled (not $v.http.existingSecret) }}{{ fail "http.enabled needs http.existingSecret, with the key token" }}{{ end }}
{{- if and (not $v.tls.plain) (not $v.tls.secretName) }}{{ fail "tls.plain: false needs tls.secretName" }}{{ end }}
{{- if and $v.serviceMonitor.enabled (not $v.http.enabled) }}{{ fail "serviceMonitor.enabled needs http.enabled" }}{{ end }}
{{- end }}

{{- /* Where celld decides without its engine, it serves without it. */ -}}
{{- define "celld.probe" -}}
{{- if and .Values.engine.url .Values.engine.failure (not (hasPrefix "error" .Values.engine.failure)) }}ping{{ else }}ready{{ end }}
{{- end }}

{{- /* The container of celld, for this chart and for those that include it. */ -}}
{{- define "celld.container" -}}
{{- $v := .Values }}
name: celld
image: "{{ $v.image.repository }}:{{ $v.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ $v.image.pullPolicy }}
env:
{{- if eq $v.mode "deployment" }}
  - {name: CELLD_BIND, value: "*"}
{{- end }}
{{- if or $v.auth.existingSecret $v.auth.password }}
  - {name: CELLD_REQUIREPASS_FILE, value: /auth/password}
{{- end }}
{{- if $v.auth.acl.existingSecret }}
  - {name: CELLD_ACLFILE, value: /acl/users.acl}
{{- end }}
{{- with $v.engine }}
{{- if .url }}
  - {name: CELLD_STORE, value: {{ .url | quote }}}
{{- if .username }}
  - {name: CELLD_STORE_USERNAME, value: {{ .username | quote }}}
{{- end }}
{{- if .existingSecret }}
  - {name: CELLD_STORE_PASSWORD_FILE, value: /engine/password}
{{- end }}
{{- if .ca.existingSecret }}
  - {name: CELLD_STORE_TLS_CA_CERT_FILE, value: /engine-ca/ca.crt}
{{- end }}
{{- if .prefix }}
  - {name: CELLD_STORE_PREFIX, value: {{ .prefix | quote }}}
{{- end }}
{{- if .failure }}
  - {name: CELLD_STORE_FAILURE, value: {{ .failure | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- if $v.persistence.enabled }}
  - {name: CELLD_DIR, value: /data}
  - {name: CELLD_APPENDONLY, value: "yes"}
{{- end }}
{{- if $v.policies }}
  - {name: CELLD_POLICIES, value: /etc/celld/policies}
{{- end }}
{{- if $v.envoy.config }}
  - {name: CELLD_ENVOY_BIND, value: "{{ if eq $v.mode "deployment" }}*{{ else }}127.0.0.1{{ end }}:{{ $v.envoy.port }}"}
  - {name: CELLD_ENVOY_CONFIG, value: /etc/celld/envoy.yaml}
{{- end }}
{{- with $v.tls }}
{{- if .secretName }}
  - {name: CELLD_TLS_PORT, value: {{ .port | quote }}}
  - {name: CELLD_TLS_CERT_FILE, value: /tls/tls.crt}
  - {name: CELLD_TLS_KEY_FILE, value: /tls/tls.key}
  - {name: CELLD_TLS_AUTH_CLIENTS, value: {{ .clients | quote }}}
{{- if ne .clients "no" }}
  - {name: CELLD_TLS_CA_CERT_FILE, value: /tls/ca.crt}
{{- end }}
{{- if not .plain }}
  - {name: CELLD_PORT, value: "0"}
{{- end }}
{{- end }}
{{- end }}
{{- if $v.http.enabled }}
  - {name: CELLD_HTTP_BIND, value: "*:{{ $v.http.port }}"}
  - {name: CELLD_HTTP_TOKEN_FILE, value: /http/token}
{{- end }}
{{- if and (eq $v.mode "deployment") (gt (int $v.shutdownDelaySeconds) 0) }}
  - {name: CELLD_SHUTDOWN_DELAY, value: {{ $v.shutdownDelaySeconds | quote }}}
{{- end }}
{{- range $name, $value := $v.settings }}
  - {name: CELLD_{{ $name | upper | replace "-" "_" }}, value: {{ $value | quote }}}
{{- end }}
{{- with $v.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
ports:
{{- if $v.tls.plain }}
  - {name: redis, containerPort: 6379}
{{- end }}
{{- if $v.tls.secretName }}
  - {name: redis-tls, containerPort: {{ $v.tls.port }}}
{{- end }}
{{- if $v.http.enabled }}
  - {name: http, containerPort: {{ $v.http.port }}}
{{- end }}
{{- if $v.envoy.config }}
  - {name: grpc-envoy, containerPort: {{ $v.envoy.port }}}
{{- end }}
{{- if eq $v.mode "sidecar" }}
restartPolicy: Always
startupProbe:
  exec: {command: [/celld, {{ include "celld.probe" . }}]}
  timeoutSeconds: 4
  failureThreshold: 30
{{- else }}
readinessProbe:
  exec: {command: [/celld, {{ include "celld.probe" . }}]}
  timeoutSeconds: 4
{{- end }}
livenessProbe:
  exec: {command: [/celld, ping]}
  timeoutSeconds: 4
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
resources: {{- toYaml $v.resources | nindent 2 }}
{{- with include "celld.mounts" . }}
volumeMounts: {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "celld.mounts" -}}
{{- $v := .Values }}
{{- if $v.persistence.enabled }}
- {name: data, mountPath: /data}
{{- end }}
{{- if or $v.policies $v.envoy.config }}
- {name: policies, mountPath: /etc/celld, readOnly: true}
{{- end }}
{{- if $v.tls.secretName }}
- {name: tls, mountPath: /tls, readOnly: true}
{{- end }}
{{- range $name := include "celld.secrets" . | fromYaml | keys | sortAlpha }}
- {name: {{ $name }}, mountPath: /{{ $name }}, readOnly: true}
{{- end }}
{{- with $v.extraVolumeMounts }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end }}

{{- /* The Secrets that are mounted as files, one key of each, under a folder of its name: so celld takes up what changes. */ -}}
{{- define "celld.secrets" -}}
{{- $v := .Values }}
{{- if or $v.auth.existingSecret $v.auth.password }}
auth: {secret: {{ include "celld.secret" . }}, key: {{ if $v.auth.existingSecret }}{{ $v.auth.key }}{{ else }}password{{ end }}, path: password}
{{- end }}
{{- if $v.auth.acl.existingSecret }}
acl: {secret: {{ $v.auth.acl.existingSecret }}, key: {{ $v.auth.acl.key }}, path: users.acl}
{{- end }}
{{- if and $v.engine.url $v.engine.existingSecret }}
engine: {secret: {{ $v.engine.existingSecret }}, key: {{ $v.engine.key }}, path: password}
{{- end }}
{{- if and $v.engine.url $v.engine.ca.existingSecret }}
engine-ca: {secret: {{ $v.engine.ca.existingSecret }}, key: {{ $v.engine.ca.key }}, path: ca.crt}
{{- end }}
{{- if $v.http.enabled }}
http: {secret: {{ $v.http.existingSecret }}, key: {{ $v.http.key }}, path: token}
{{- end }}
{{- end }}

{{- define "celld.volumes" -}}
{{- $v := .Values }}
{{- if $v.persistence.enabled }}
- name: data
  persistentVolumeClaim: {claimName: {{ $v.persistence.existingClaim | default (include "celld.fullname" .) }}}
{{- end }}
{{- if or $v.policies $v.envoy.config }}
- name: policies
  configMap: {name: {{ include "celld.fullname" . }}}
{{- end }}
{{- if $v.tls.secretName }}
- name: tls
  secret: {secretName: {{ $v.tls.secretName }}}
{{- end }}
{{- range $name, $of := include "celld.secrets" . | fromYaml }}
- name: {{ $name }}
  secret: {secretName: {{ $of.secret }}, items: [{key: {{ $of.key }}, path: {{ $of.path }}}]}
{{- end }}
{{- with $v.extraVolumes }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end }}
