// docs/migrate/agentgateway-fields.md: every field of agentgateway's custom resources, and what Sluice has for it.
import { readFileSync } from 'node:fs'
import { kinds as ownKinds } from '../../src/control/api/kinds.ts'
import { differences } from '../../src/tools/import/agentgateway/differences.ts'
import {
  kindNames,
  nameInSluice,
  valueInSluice,
} from '../../src/tools/import/agentgateway/names.ts'

const source = new URL('../../config/agentgateway-fields.json', import.meta.url)

const readSource = () => JSON.parse(readFileSync(source, 'utf8'))

/** Compares each field of the source with the schemas. `undecided` has the fields that are in no entry of `differences`. */
export function compareFields({ kinds, types } = readSource()) {
  const results = Object.entries(kinds).map(([kind, fields]) => {
    const comparison = { kind, supported: [], different: [], undecided: [], types }
    const row = ownKinds.find(({ kind: own }) => own === kindNames[kind])
    const { spec } = row.body
    compareObject(comparison, fields, spec.schema.node, { path: '.spec', own: '.spec' })
    return comparison
  })
  return {
    results,
    undecided: results.flatMap(({ kind, undecided }) => undecided.map((path) => `${kind}${path}`)),
  }
}

/** `path` is that of the source and `own` that of Sluice, both with `.0` after lists, as the import has them. */
function compareObject(comparison, fields, node, place) {
  const { node: inner, suffix } = contentOf(node)
  for (const [name, definition] of Object.entries(fields)) {
    const at = `${place.path}${suffix}`
    const ownName = nameInSluice(at, name)
    const field = { path: `${at}.${name}`, own: `${place.own}${suffix}.${ownName}` }
    const property = inner.type === 'object' ? inner.fields[ownName] : undefined
    if (property !== undefined) compareField(comparison, definition, property.schema.node, field)
    else if (inner.type === 'json' || inner.open === true) comparison.supported.push(field)
    else addDifference(comparison, definition, field, undefined)
  }
}

function compareField(comparison, definition, node, field) {
  comparison.supported.push(field)
  const fields = typeof definition === 'string' ? comparison.types[definition.slice(1)] : definition
  if (Array.isArray(fields)) {
    const { node: inner, suffix } = contentOf(node)
    const { values } = inner
    const at = `${field.path}${suffix}`
    const missing = fields.filter((one) => !values?.includes(valueInSluice(at, one)))
    if (missing.length > 0 && values !== undefined) addDifference(comparison, true, field, missing)
  } else if (typeof fields === 'object') compareObject(comparison, fields, node, field)
}

function addDifference(comparison, definition, field, values) {
  const difference = differenceOf(field.path, values)
  if (difference === undefined) {
    comparison.undecided.push(values === undefined ? field.path : `${field.path}: ${values}`)
    return
  }
  comparison.different.push({ ...field, difference, values })
  if (difference.status !== 'moved') return
  const node = nodeAt(comparison.kind, difference.to)
  compareField(comparison, definition, node, { path: field.path, own: difference.to })
}

/** Returns the entry for a field, or for the nearest field around it that has one. */
function differenceOf(path, values) {
  const found = differences.find(
    (one) => one.at.test(path) && (values === undefined) === (one.only === undefined),
  )
  const around = path.slice(0, path.lastIndexOf('.'))
  return found ?? (around === '' || values !== undefined ? undefined : differenceOf(around, values))
}

function nodeAt(kind, path) {
  const { body } = ownKinds.find(({ kind: own }) => own === kindNames[kind])
  const [, first, ...names] = path.split('.')
  return names.reduce((node, name) => node.fields[name].schema.node, body[first].schema.node)
}

/** Returns the schema inside lists and maps, and the suffix of the path for them. */
function contentOf(node, suffix = '') {
  if (node.type === 'list') return contentOf(node.items, `${suffix}.0`)
  if (node.type === 'map') return contentOf(node.values, `${suffix}.*`)
  return { node, suffix }
}

const introduction = ({ commit, date, total }) => `# Fields of agentgateway

What Sluice has for each of the ${total} fields of agentgateway's custom resources, as of ${date} (commit \`${commit.slice(0, 12)}\`). [\`sluice import\`](agentgateway.md) makes these changes, and reports every field that it cannot convert.

- **supported**: Sluice has the field. If it has another name, the import renames it.
- **default**: Sluice has no such field, and always does what the value in the table says. The import removes this value and reports others.
- **refused**: a manifest with the field is invalid in Sluice, and the import reports it. The reason says what to do instead.
- **not applicable**: the field is about something that Sluice does not have or need.
`

/** @returns {Record<string, string>} */
export function generate() {
  const { commit, date } = readSource()
  const { results, undecided } = compareFields()
  if (undecided.length > 0) {
    throw new Error(`differences.ts has no entry for ${undecided.join(', ')}`)
  }
  const total = results.reduce((sum, one) => sum + one.supported.length + lostFields(one).length, 0)
  const sections = results.map(sectionOf)
  return {
    'docs/migrate/agentgateway-fields.md': `${note}\n${introduction({ commit, date, total })}\n${sections.join('\n')}`,
  }
}

const note =
  '<!-- Generated by npm run generate from config/agentgateway-fields.json and the schemas; do not edit. -->'

const lostFields = ({ different }) => different.filter(({ values }) => values === undefined)

const shown = (path) => `\`${path.slice(1).replaceAll('.0', '[]')}\``

function sectionOf(comparison) {
  const { kind, different } = comparison
  const own = kindNames[kind]
  const rows = [...groupsOf(comparison)].map(
    ([path, { name, count, without }]) =>
      `| ${shown(path)} | ${shown(name)} | ${count}${without > 0 ? `, without ${without} that are below` : ''} |`,
  )
  const byReason = Map.groupBy(different, ({ difference }) => difference)
  const others = [...byReason].map(
    ([difference, fields]) =>
      `| ${pathsOf(fields)} | ${statusOf(difference)} | ${difference.reason} |`,
  )
  return [
    `## ${kind}${own === kind ? '' : `: ${own}`}\n`,
    `| field | in Sluice | supported fields |\n|---|---|---|\n${rows.join('\n')}\n`,
    `| other fields | status | reason |\n|---|---|---|\n${others.join('\n')}\n`,
  ].join('\n')
}

/** Groups the supported fields by the first two names below `spec`. */
function groupsOf({ supported, different }) {
  const groups = new Map()
  const depth = (path) => path.split('.').slice(0, 4).join('.')
  for (const { path, own } of supported) {
    const key = depth(path)
    const group = groups.get(key) ?? { name: depth(own), count: 0, without: 0 }
    group.count++
    groups.set(key, group)
  }
  for (const key of [...groups.keys()]) {
    const isAbove = [...groups.keys()].some((other) => other.startsWith(`${key}.`))
    if (isAbove) groups.delete(key)
  }
  for (const { path } of different) {
    const group = groups.get(depth(path))
    if (group !== undefined) group.without++
  }
  return groups
}

const statusOf = ({ status, values, to }) => {
  if (status === 'moved') return `supported as ${shown(to)}`
  if (status !== 'default') return status
  const named = values.filter((value) => value !== '')
  return named.length === 0 ? 'default (empty)' : `default ${named.map((one) => `\`${one}\``)}`
}

/** Maximum number of paths that a row lists. */
const maxPaths = 2

function pathsOf(fields) {
  const texts = fields.map(({ path, values }) =>
    values === undefined ? shown(path) : `${shown(path)}: ${values.map((one) => `\`${one}\``)}`,
  )
  const listed = texts.slice(0, maxPaths).join(', ')
  const rest = texts.length - maxPaths
  return rest > 0 ? `${listed} and ${rest} other places` : listed
}
