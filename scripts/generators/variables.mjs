// Two tables in docs/expressions.md, from the table of variables: since when each field has a value, and
// what the expressions of each policy cannot read.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expressionPoints, stages, variableTable } from '../../src/engines/cel/index.ts'

const root = join(import.meta.dirname, '../..')
const page = 'docs/expressions.md'
const marker = (edge) =>
  `<!-- ${edge} of the tables, generated from src/engines/cel/gateway-variables.ts -->`

/** @returns {Record<string, string>} */
export function generate() {
  const text = readFileSync(join(root, page), 'utf8')
  const [begin, end] = [marker('begin'), marker('end')]
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from) throw new Error(`${page} has lost the markers of its tables`)
  return { [page]: `${text.slice(0, from)}${begin}\n${tables()}${text.slice(to)}` }
}

function tables() {
  const values = [...variableTable].flatMap(([name, entry]) => byStage(name, entry))
  const since = Object.entries(stages).flatMap(([stage, text]) => {
    const names = values.filter((value) => value.stage === stage).map(({ text }) => text)
    return names.length === 0 ? [] : [`| ${names.join(', ')} | ${text} |`]
  })
  const points = Object.values(expressionPoints).map(
    ({ title, has }) => `| ${title} | ${unreadable(has)} |`,
  )
  return `${['| value | is set |', '|---|---|', ...since].join('\n')}\n
${['| expression | cannot read |', '|---|---|', ...points].join('\n')}\n`
}

/** The variable, and the fields that are set at another stage, together for each stage. */
function byStage(name, { stage, fields }) {
  const later = [...(fields ?? [])].flatMap(([field, entry]) => byStage(`${name}.${field}`, entry))
  return [{ stage, name, text: `\`${name}\`` }, ...later.filter((one) => one.stage !== stage)]
}

/** Names of all values that are not set at a point, except those that never are. */
function unreadable(has) {
  const found = [...variableTable].flatMap(([name, entry]) =>
    byStage(name, entry).filter(({ stage }) => stage !== 'never' && !has.includes(stage)),
  )
  const names = new Set(found.map(({ name }) => name))
  const isShown = (name) => ![...names].some((other) => name.startsWith(`${other}.`))
  const shown = found.filter(({ name }) => isShown(name)).map(({ text }) => text)
  return shown.length === 0 ? 'everything can be read' : shown.join(', ')
}
