// The table of phases in docs/request-lifecycle.md, from the list in src/gateway/proxy/phases.ts: the comment
// above a phase says why it stands there, and its line "Fails with" the errors that it may end in.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCatalogue } from '../../src/ground/errors/index.ts'

const root = join(import.meta.dirname, '../..')
const page = 'docs/request-lifecycle.md'
const marker = (edge) =>
  `<!-- ${edge} of the phases, generated from src/gateway/proxy/phases.ts -->`

/** @returns {Record<string, string>} */
export function generate() {
  const text = readFileSync(join(root, page), 'utf8')
  const [begin, end] = [marker('begin'), marker('end')]
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from) throw new Error(`${page} has lost the markers of its phases`)
  return { [page]: `${text.slice(0, from)}${begin}\n${tableOf(phases())}${text.slice(to)}` }
}

function phases() {
  const source = readFileSync(join(root, 'src/gateway/proxy/phases.ts'), 'utf8')
  const [, list] = /requestPhases[^=]*= \[\n(.*?)\n\]/s.exec(source) ?? []
  if (list === undefined) throw new Error('src/gateway/proxy/phases.ts has no list of phases')
  return [...list.matchAll(/((?: {2}\/\/ .*\n)+) {2}(\w+),/g)].map(([, comment, name]) => {
    const [why, failures = ''] = comment
      .replace(/\n? {2}\/\/ /g, ' ')
      .trim()
      .split(' Fails with ')
    return { name, why, errors: failures.match(/\w+/g) ?? [] }
  })
}

function tableOf(found) {
  const rows = found.map(({ name, why, errors }, at) => {
    const label = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    return `| ${at + 1} | ${label} | ${why} | ${errors.map(errorText).join(', ')} |`
  })
  return `${['| | phase | why here | may fail with |', '|---|---|---|---|', ...rows].join('\n')}\n`
}

function errorText(code) {
  if (errorCatalogue[code] === undefined) throw new Error(`phases.ts names no error: ${code}`)
  return `\`${code}\` (${errorCatalogue[code].status})`
}
