// From the schemas in src/control/api: the CRDs of the chart, JSON Schemas for editors, reference pages and
// docs/status.md.
import { stringify } from 'yaml'
import { crds } from '../../src/control/api/crds.ts'
import { editorSchemas, referencePages, supportPage } from '../../src/control/api/pages.ts'
import { admissionPolicy } from '../../src/control/desired/admission-policy.ts'

const note = 'Generated from src/control/api by npm run generate; do not edit.'

/** @returns {Record<string, string>} */
export function generate() {
  const files = {}
  for (const crd of crds()) {
    const text = stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })
    // Helm would read these as a template action.
    if (text.includes('{{')) throw new Error(`${crd.metadata.name} has {{ in its text`)
    files[`charts/sluice-crds/templates/${crd.metadata.name}.yaml`] = `# ${note}\n${text}`
  }
  const [policy, binding] = admissionPolicy().map((one) => stringify(one, { lineWidth: 0 }))
  const enforced = binding.replace(
    /validationActions:\n( +- \w+\n)+/,
    'validationActions: {{ toJson .Values.admissionPolicy.actions }}\n',
  )
  files['charts/sluice-crds/templates/admission-policy.yaml'] =
    `{{- /* ${note.replace('src/control/api', 'src/control/desired/admission-policy.ts')} */}}\n` +
    `{{- if .Values.admissionPolicy.enabled }}\n${policy}---\n${enforced}{{- end }}\n`
  for (const [name, schema] of editorSchemas()) {
    files[`docs/schema/${name}.json`] = `${JSON.stringify(schema, null, 2)}\n`
  }
  for (const [name, page] of referencePages()) {
    files[`docs/reference/${name}.md`] = `<!-- ${note} -->\n\n${page}`
  }
  files['docs/status.md'] = `<!-- ${note} -->\n\n${supportPage()}`
  return files
}
