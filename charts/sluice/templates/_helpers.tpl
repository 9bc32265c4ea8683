{{/* The name of the chart, or its override. */}}
{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the objects of this release, or the beginning of their names. */}}
{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "sluice.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A name with a suffix, cut to 63 characters before the suffix. */}}
{{- define "sluice.suffixed" -}}
{{- $fullname := include "sluice.fullname" .context -}}
{{- printf "%s-%s" ($fullname | trunc (int (sub 62 (len .suffix))) | trimSuffix "-") .suffix -}}
{{- end -}}

{{/* Labels that select the controller's pods. Add none: the selector of a Deployment cannot change. */}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "sluice.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.commonLabels" . }}
{{ include "sluice.selectorLabels" . }}
{{- end -}}

{{- define "sluice.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sluice.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The controller's image: each part from controller.image if set, else from image. */}}
{{- define "sluice.image" -}}
{{- $own := .Values.controller.image -}}
{{- $registry := default .Values.image.registry $own.registry -}}
{{- $tag := default (include "sluice.imageTag" (list . $own.repository)) $own.tag -}}
{{- if $registry }}{{ trimSuffix "/" $registry }}/{{ end }}{{ $own.repository }}:{{ $tag }}
{{- end -}}

{{/*
The tag of an image: image.tag if set, else the version of the chart. Released charts add the digest, which
the release writes into files/image-digests.yaml.
*/}}
{{- define "sluice.imageTag" -}}
{{- $root := first . -}}
{{- $digest := get (fromYaml ($root.Files.Get "files/image-digests.yaml")) (last .) -}}
{{- $released := ternary (printf "%s@%s" $root.Chart.AppVersion $digest) $root.Chart.AppVersion (ne $digest "") -}}
{{- default $released $root.Values.image.tag -}}
{{- end -}}

{{/* Roles of the cluster have no namespace; two releases must not share one. */}}
{{- define "sluice.clusterRoleName" -}}
{{- printf "%s-%s" (include "sluice.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* The text "true" if this release stores the event log on NATS, otherwise nothing. */}}
{{- define "sluice.usesNats" -}}
{{- if or .Values.nats.enabled .Values.controller.nats.url .Values.controller.nats.urlSecretRef -}}true{{- end -}}
{{- end -}}

{{/* Fails unless the values name at most one NATS server and one place for the event log. */}}
{{- define "sluice.checkLog" -}}
{{- $ways := 0 -}}
{{- range $way := list .Values.nats.enabled .Values.controller.nats.url .Values.controller.nats.urlSecretRef -}}
{{- if $way -}}{{- $ways = add1 $ways -}}{{- end -}}
{{- end -}}
{{- if gt (int $ways) 1 -}}
{{- fail "the event log has one place: give one of nats.enabled, controller.nats.url and controller.nats.urlSecretRef" -}}
{{- end -}}
{{- if and (include "sluice.usesNats" .) .Values.controller.persistence.enabled -}}
{{- fail "controller.persistence is for the log in a file; with NATS the controller keeps nothing on disk" -}}
{{- end -}}
{{- if and .Values.controller.persistence.enabled (gt (int .Values.controller.replicaCount) 1) -}}
{{- fail "controller.persistence keeps the log of a single replica; for controller.replicaCount above 1 give nats.enabled or controller.nats.url" -}}
{{- end -}}
{{- end -}}

{{/* Fails if two ports are equal: a Service cannot have a port twice, and a pod cannot listen on it twice. */}}
{{- define "sluice.checkPorts" -}}
{{- $ports := .Values.controller.service.ports -}}
{{- $numbers := list (int $ports.agwGrpc) (int $ports.health) (int $ports.metrics) -}}
{{- if .Values.controller.admission.enabled }}{{ $numbers = append $numbers (int $ports.admission) }}{{ end -}}
{{- if ne (len (uniq $numbers)) (len $numbers) -}}
{{- fail "controller.service.ports: agwGrpc, health, metrics and admission must be different ports" -}}
{{- end -}}
{{- end -}}

{{/* A scalar as text. Whole numbers do not get the form 1e+06. */}}
{{- define "sluice.scalar" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* One variable of controller.extraEnv: a scalar, {value} or {valueFrom}. */}}
{{- define "sluice.extraVariable" -}}
- name: {{ .name }}
{{- if kindIs "map" .given }}
{{- if eq (hasKey .given "value") (hasKey .given "valueFrom") }}
{{- fail (printf "controller.extraEnv.%s: give either value or valueFrom" .name) }}
{{- end }}
{{- if hasKey .given "value" }}
  value: {{ include "sluice.scalar" .given.value | quote }}
{{- else }}
  valueFrom:
    {{- toYaml .given.valueFrom | nindent 4 }}
{{- end }}
{{- else if or (kindIs "slice" .given) (kindIs "invalid" .given) }}
{{- fail (printf "controller.extraEnv.%s: a text, a number, a boolean, {value} or {valueFrom} is wanted" .name) }}
{{- else }}
  value: {{ include "sluice.scalar" .given | quote }}
{{- end }}
{{- end -}}

{{/* The environment variables that this chart sets. Those in extraEnv replace them. */}}
{{- define "sluice.env" -}}
{{- $extra := .Values.controller.extraEnv -}}
{{- $fullname := include "sluice.fullname" . -}}
{{- $ports := .Values.controller.service.ports -}}
{{- $fixed := dict
  "SLUICE_LOG_LEVEL" .Values.controller.logLevel
  "SLUICE_XDS_ADDRESS" (printf ":%d" (int $ports.agwGrpc))
  "SLUICE_HEALTH_ADDRESS" (printf ":%d" (int $ports.health))
  "SLUICE_METRICS_ADDRESS" (printf ":%d" (int $ports.metrics))
  "SLUICE_CONSOLE_ADDRESS" (ternary (printf "127.0.0.1:%d" (int $ports.console)) "off" .Values.controller.console.enabled)
  "SLUICE_XDS_SERVICE_NAME" $fullname
  "SLUICE_XDS_SERVICE_PORT" (int $ports.agwGrpc)
  "SLUICE_DEPLOYMENT_NAME" $fullname
  "SLUICE_CLUSTER_ROLE_NAME" (include "sluice.clusterRoleName" .)
  "SLUICE_PROXY_IMAGE_REGISTRY" .Values.image.registry
  "SLUICE_PROXY_IMAGE_TAG" (include "sluice.imageTag" (list . "sluice-proxy"))
-}}
{{- if .Values.controller.xds.tls.enabled }}{{ $_ := set $fixed "SLUICE_XDS_TLS_ENABLED" true }}{{ end -}}
{{- if .Values.controller.admission.enabled }}{{ $_ := merge $fixed (dict "SLUICE_ADMISSION_ADDRESS" (printf ":%d" (int $ports.admission)) "SLUICE_ADMISSION_MODE" .Values.controller.admission.mode) }}{{ end -}}
{{- if and .Values.controller.admission.enabled .Values.controller.admission.clientCaBundle }}{{ $_ := set $fixed "SLUICE_ADMISSION_CLIENT_CA" "/etc/admission-clients/ca.crt" }}{{ end -}}
{{- if ne .Values.controller.console.signIn "token" }}{{ $_ := set $fixed "SLUICE_CONSOLE_SIGN_IN" .Values.controller.console.signIn }}{{ end -}}
{{- if .Values.controller.console.actions }}{{ $_ := set $fixed "SLUICE_CONSOLE_ACTIONS" true }}{{ end -}}
{{- if not .Values.controller.kubernetesEvents.enabled }}{{ $_ := set $fixed "SLUICE_KUBERNETES_EVENTS" false }}{{ end -}}
{{- if .Values.inferenceExtension.enabled }}{{ $_ := set $fixed "SLUICE_INFERENCE_EXTENSION_ENABLED" true }}{{ end -}}
{{- with .Values.discoveryNamespaceSelectors }}{{ $_ := set $fixed "SLUICE_DISCOVERY_NAMESPACE_SELECTORS" (toJson .) }}{{ end -}}
{{- with .Values.gatewayClassParametersRefs }}{{ $_ := set $fixed "SLUICE_GATEWAY_CLASS_PARAMETERS_REFS" (toJson .) }}{{ end -}}
{{- with .Values.controller.grantStore }}{{ $_ := set $fixed "SLUICE_PROXY_GRANT_STORE" . }}{{ end -}}
{{- with .Values.controller.nats.url }}{{ $_ := set $fixed "SLUICE_NATS" . }}{{ end -}}
{{- with .Values.controller.nats.urlSecretRef }}
{{- $_ := set $fixed "SLUICE_NATS" (dict "valueFrom" (dict "secretKeyRef" (dict "name" .name "key" .key))) }}
{{- end -}}
{{- if .Values.nats.enabled }}
{{- $name := include "sluice.suffixed" (dict "context" . "suffix" "nats") }}
{{- $_ := set $fixed "SLUICE_NATS" (dict "valueFrom" (dict "secretKeyRef" (dict "name" $name "key" "url"))) }}
{{- end -}}
{{- if not (include "sluice.usesNats" .) }}{{ $_ := set $fixed "SLUICE_LOG_FILE" "/var/lib/sluice/events.db" }}{{ end -}}
{{- $_ := set $fixed "POD_NAME" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name"))) -}}
{{- $_ := set $fixed "POD_NAMESPACE" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace"))) -}}
{{- $all := merge (deepCopy $extra) $fixed -}}
{{- range $name := keys $all | sortAlpha }}
{{ include "sluice.extraVariable" (dict "name" $name "given" (ternary (get $extra $name) (get $fixed $name) (hasKey $extra $name))) }}
{{- end }}
{{- end -}}

{{/* The configuration of the NATS server that this chart installs. */}}
{{- define "sluice.natsConfig" -}}
server_name: $POD_NAME
listen: 0.0.0.0:4222
http_port: 8222
authorization {
  users: [
    { user: sluice, password: $NATS_PASSWORD }
    # Proxies use this user to share grants and answers, and to publish decision records. It cannot read or write events.
    {
      user: proxy
      password: $NATS_PROXY_PASSWORD
      permissions: {
        publish: {
          allow: [
            "sluice-decisions"
            "$JS.API.INFO"
            "$JS.API.STREAM.INFO.SLUICE_DECISIONS"
            "$JS.API.STREAM.CREATE.SLUICE_DECISIONS"
            {{- range $bucket := list "sluice_grants" "sluice_answers" }}
            "$KV.{{ $bucket }}.>"
            {{- range list "INFO" "CREATE" "MSG.GET" "PURGE" }}
            "$JS.API.STREAM.{{ . }}.KV_{{ $bucket }}"
            {{- end }}
            {{- end }}
          ]
        }
        subscribe: { allow: ["_INBOX.proxy.>"] }
      }
    }
  ]
}
jetstream {
  store_dir: /data
  # Written to disk before it is acknowledged: a power failure loses no event.
  sync_interval: always
}
{{- end -}}

{{/*
How pods are replaced. The defaults of Kubernetes are written out, because values that the API server fills
in have no field manager, stay when the strategy changes, and would then be refused.
*/}}
{{- define "sluice.strategy" -}}
{{- $strategy := .Values.controller.strategy -}}
{{- if not $strategy -}}
{{- /* The volume of the log is one pod's at a time. */ -}}
{{- $strategy = dict "type" (ternary "Recreate" "RollingUpdate" .Values.controller.persistence.enabled) -}}
{{- end -}}
{{- $type := default "RollingUpdate" $strategy.type -}}
{{- if eq $type "RollingUpdate" -}}
{{- $pace := dict "maxSurge" "25%" "maxUnavailable" "25%" -}}
{{- range $field, $given := $strategy.rollingUpdate }}{{ $_ := set $pace $field $given }}{{ end -}}
{{- $strategy = merge (dict "type" $type "rollingUpdate" $pace) $strategy -}}
{{- end -}}
{{- toYaml $strategy -}}
{{- end -}}
