// From the schemas in src/api: the CRDs of the chart, JSON Schemas for editors, reference pages and
// docs/status.md.
import { stringify } from 'yaml'
import { crds } from '../../src/api/crds.ts'
import { editorSchemas, referencePages, supportPage } from '../../src/api/pages.ts'

const note = 'Generated from src/api by npm run generate; do not edit.'

/** @returns {Record<string, string>} */
export function generate() {
  const files = {}
  for (const crd of crds()) {
    const text = stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })
    // Helm would read these as a template action.
    if (text.includes('{{')) throw new Error(`${crd.metadata.name} has {{ in its text`)
    files[`charts/sluice-crds/templates/${crd.metadata.name}.yaml`] = `# ${note}\n${text}`
  }
  for (const [name, schema] of editorSchemas()) {
    files[`docs/schema/${name}.json`] = `${JSON.stringify(schema, null, 2)}\n`
  }
  for (const [name, page] of referencePages()) {
    files[`docs/reference/${name}.md`] = `<!-- ${note} -->\n\n${page}`
  }
  files['docs/status.md'] = `<!-- ${note} -->\n\n${supportPage()}`
  return files
}
