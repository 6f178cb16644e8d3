{{- define "htcondor-pool.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default "latest" }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A part of a core is a slot with one: HTCondor counts whole ones. */ -}}
{{- define "htcondor-pool.wholeCores" -}}
{{- $cpus := .Values.workerCpus -}}
{{- if hasSuffix "m" $cpus -}}{{ max 1 (div (trimSuffix "m" $cpus | int) 1000) }}{{- else -}}{{ max 1 (int $cpus) }}{{- end -}}
{{- end -}}
