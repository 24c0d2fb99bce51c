{{- /* The document: one section for each type. crd-ref-docs starts at gvList. */ -}}
{{- define "gvList" -}}
# API reference

Written by `make generate` from `api/v1alpha1`: change the types, not this file. `kubectl explain postgrescluster.spec` says the same in a terminal.
{{ range . }}
## {{ .GroupVersionString }}
{{ range .SortedTypes }}{{ template "type" . }}{{ end }}
{{- end }}
{{- end -}}

{{- define "type" -}}
{{- if markdownShouldRenderType . }}
### {{ .Name }}

{{ template "escaped" .Doc }}
{{ if .References }}
Part of {{ range $i, $user := .SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $user }}{{ end }}.
{{ end }}
{{- if .IsAlias }}
{{- if .UnderlyingType.ValueType }}
A map to {{ markdownRenderTypeLink .UnderlyingType.ValueType }}.
{{ else }}
A {{ markdownRenderType .UnderlyingType }}.
{{ end }}
{{- end }}
{{- range .Validation }}
- {{ template "rule" . }}
{{- end }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}
- {{ template "escaped" .Message }}
{{- end }}
{{- if .EnumValues }}
Values: {{ range $i, $value := .EnumValues }}{{ if $i }}, {{ end }}`{{ .Name }}`{{ end }}.
{{ end }}
{{- if .Members }}

| field | type | default | what it is, and what is accepted |
| --- | --- | --- | --- |
{{- range .Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ if .Default }}`{{ .Default | nospace }}`{{ end }} | {{ template "member" . }} |
{{- end }}
{{ end }}
{{- end }}
{{- end -}}

{{- /* A rule of the field's own type stands with the type. */ -}}
{{- define "member" -}}
{{- if eq .Name "metadata" -}}
Name, namespace, labels and annotations.
{{- else -}}
{{ template "cell" .Doc }}
{{- range .Validation }}{{ if ne . "Required: {}" }}<br />• {{ template "rule" . }}{{ end }}{{ end }}
{{- $known := index .Type.Markers "kubebuilder:validation:XValidation" }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}{{ if not (has . $known) }}<br />• {{ template "cell" .Message }}{{ end }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* A rule such as "Pattern: `^[a|b]$`": what is in quotes is shown as it is, but a bar would end the cell. */ -}}
{{- define "rule" -}}
{{ . | trim | replace "|" "\\|" | replace "2.147483647e+09" "2147483647" }}
{{- end -}}

{{- define "cell" -}}
{{ . | replace "|" "\\|" | replace "<" "&lt;" | replace "\n\n" "<br />" | replace "\n" " " }}
{{- end -}}

{{- define "escaped" -}}
{{ . | replace "<" "&lt;" }}
{{- end -}}
