{{/* The name of the objects of this release: RELEASE-NAME, or its override. */}}
{{- define "standalone.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $joined | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of an object with a suffix, cut to 63 characters before the suffix. */}}
{{- define "standalone.suffixed" -}}
{{- $fullname := include "standalone.fullname" .context -}}
{{- printf "%s-%s" ($fullname | trunc (int (sub 62 (len .suffix))) | trimSuffix "-") .suffix -}}
{{- end -}}

{{/* Labels that select the pods. Add none: the selector of a Deployment cannot change. */}}
{{- define "standalone.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "standalone.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "standalone.selectorLabels" . }}
{{- end -}}

{{- define "standalone.serviceAccountName" -}}
{{- default (ternary (include "standalone.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{/* The image. A release writes the digest of its image into files/image-digests.yaml. */}}
{{- define "standalone.image" -}}
{{- $image := .Values.image -}}
{{- $digest := get (fromYaml (.Files.Get "files/image-digests.yaml")) $image.repository -}}
{{- $released := ternary (printf "%s@%s" .Chart.AppVersion $digest) .Chart.AppVersion (ne $digest "") -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}:{{ default $released $image.tag }}
{{- end -}}

{{/* Fails if the values contradict each other. */}}
{{- define "standalone.check" -}}
{{- if and .Values.persistence.enabled (or (gt (int .Values.replicaCount) 1) .Values.autoscaling) -}}
{{- fail "persistence keeps the event log of a single replica: set replicaCount to 1 and no autoscaling, or set persistence.enabled to false" -}}
{{- end -}}
{{- $names := dict -}}
{{- range .Values.service.ports -}}
{{- if hasKey $names .name }}{{ fail (printf "service.ports: two ports are named %s" .name) }}{{ end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- end -}}

{{/* A scalar as text. Whole numbers do not get the form 1e+06. */}}
{{- define "standalone.scalar" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* The environment variables. Those in extraEnv replace the others. */}}
{{- define "standalone.env" -}}
{{- $fixed := dict
  "RUST_LOG" .Values.logLevel
  "CONNECTION_MIN_TERMINATION_DEADLINE" "10s"
  "TERMINATION_GRACE_PERIOD_SECONDS" .Values.terminationGracePeriodSeconds
  "SLUICE_CONSOLE_ADDRESS" (ternary "127.0.0.1:15004" "off" .Values.console.enabled)
-}}
{{- $extra := .Values.extraEnv -}}
{{- $all := merge (deepCopy $extra) $fixed -}}
{{- range $name := keys $all | sortAlpha }}
{{- $given := ternary (get $extra $name) (get $fixed $name) (hasKey $extra $name) }}
- name: {{ $name }}
{{- if not (kindIs "map" $given) }}
  value: {{ include "standalone.scalar" $given | quote }}
{{- else if hasKey $given "value" }}
  value: {{ include "standalone.scalar" $given.value | quote }}
{{- else }}
  valueFrom:
    {{- toYaml $given.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Where manifests come from: list of {kind, name, path}. */}}
{{- define "standalone.sources" -}}
{{- $sources := list -}}
{{- if .Values.manifests -}}
{{- $sources = append $sources (dict "kind" "configMap" "name" (include "standalone.suffixed" (dict "context" . "suffix" "manifests")) "volume" "manifests") -}}
{{- end -}}
{{- range $index, $name := .Values.existingConfigMaps -}}
{{- $sources = append $sources (dict "kind" "configMap" "name" $name "volume" (printf "config-map-%d" $index)) -}}
{{- end -}}
{{- range $index, $name := .Values.existingSecrets -}}
{{- $sources = append $sources (dict "kind" "secret" "name" $name "volume" (printf "secret-%d" $index)) -}}
{{- end -}}
{{- dict "sources" $sources | toYaml -}}
{{- end -}}
