/** Differences between two observations, and the page that explains them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Observation } from './observe.ts'
import { type Peer, peers } from './proxies.ts'

export interface Difference {
  /** The name of the case. */
  readonly name: string
  readonly peer: Peer
  readonly part: string
  readonly own: string
  readonly theirs: string
}

/** How the page writes that a part is not there. */
export const absent = '–'

/**
 * Differences part by part. If the two did not even end in the same way, that is the only difference: a
 * response of a proxy has no part in common with that of the server.
 */
export function differencesOf(
  name: string,
  own: Observation,
  peer: Peer,
  theirs: Observation,
): Difference[] {
  const [mine, other] = [outcomeOf(own), outcomeOf(theirs)]
  if (mine !== other) return [{ name, peer, part: 'outcome', own: mine, theirs: other }]
  const parts = [...new Set([...own.keys(), ...theirs.keys()])]
  return parts.flatMap((part) => {
    const [ours, others] = [own.get(part) ?? absent, theirs.get(part) ?? absent]
    return ours === others ? [] : [{ name, peer, part, own: ours, theirs: others }]
  })
}

/** Whose response the client got, and how often the request reached the server if not its response came. */
function outcomeOf(parts: Observation): string {
  const status = parts.get('response.status') ?? 'nothing'
  const malformed = parts.get('response.malformed')
  if (malformed !== undefined) return `${parts.get('response.start')} (${malformed})`
  if (parts.get('response.from') === 'the server') return `${status} of the server`
  const reset = parts.get('stream.reset')
  const goaway = parts.get('connection.goaway')
  const count = parts.get('requests')
  return [
    parts.get('response.from') === 'the proxy' ? `${status} of the proxy` : status,
    ...(reset === undefined ? [] : [`reset with ${reset}`]),
    ...(goaway === undefined ? [] : [`GOAWAY with ${goaway}`]),
    ...(count === '0' ? [] : [`requests: ${count}`]),
  ].join(', ')
}

/** A row of the page: which differences it explains, and why. Cells may have `*` for any text. */
export interface Explanation extends Difference {
  readonly section: string
  readonly reason: string
  readonly line: number
}

const page = join(import.meta.dirname, '../../docs/differences.md')
const columns = 7

/** The rows of the tables whose second cell names a peer. @throws Error if a row lacks a reason */
export function readExplanations(text = readFileSync(page, 'utf8')): Explanation[] {
  return text.split('\n').flatMap((line, at) => {
    const cells = cellsOf(line)
    const peer = peers.find((known) => known === cells[1]?.toLowerCase())
    if (peer === undefined) return []
    const [name = '', , part = '', own = '', theirs = '', section = '', reason = ''] = cells
    if (cells.length !== columns || section === '' || reason === '') {
      throw new Error(
        `docs/differences.md:${at + 1}: expected ${columns} cells, none of them empty`,
      )
    }
    return [{ name, peer, part, own, theirs, section, reason, line: at + 1 }]
  })
}

/** Cells without the marks of code; `\|` is a bar. */
function cellsOf(line: string): string[] {
  if (!line.startsWith('| ')) return []
  const cells = line
    .slice(2)
    .replace(/ \|\s*$/, '')
    .split(/ \| /)
  return cells.map((cell) =>
    cell
      .trim()
      .replace(/^`(.*)`$/, '$1')
      .replaceAll('\\|', '|'),
  )
}

/** A row for the page whose section and reason are still to be written. */
export function rowOf({ name, peer, part, own, theirs }: Difference): string {
  const value = (text: string) => (text === absent ? text : `\`${text.replaceAll('|', '\\|')}\``)
  return `| \`${name}\` | ${peer} | \`${part}\` | ${value(own)} | ${value(theirs)} |  |  |`
}

function fits(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text)
}

export const explains = (row: Explanation, difference: Difference): boolean =>
  row.peer === difference.peer &&
  fits(row.name, difference.name) &&
  fits(row.part, difference.part) &&
  fits(row.own, difference.own) &&
  fits(row.theirs, difference.theirs)

export interface Verdict {
  readonly unexplained: readonly Difference[]
  /** Rows that explain nothing any more. */
  readonly stale: readonly Explanation[]
}

export function judge(
  differences: readonly Difference[],
  explanations: readonly Explanation[],
): Verdict {
  return {
    unexplained: differences.filter((one) => !explanations.some((row) => explains(row, one))),
    stale: explanations.filter((row) => !differences.some((one) => explains(row, one))),
  }
}
