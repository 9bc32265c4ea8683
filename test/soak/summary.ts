/** What a soak prints. */
import type { Ledger, Violation } from './ledger.ts'
import { type Scene, writeFindings } from './scene.ts'

export function tableOf({ counts }: Ledger, seconds: number): string[] {
  const row = (cells: readonly string[]) =>
    `${(cells[0] ?? '').padEnd(20)}${cells
      .slice(1)
      .map((cell) => cell.padStart(14))
      .join('')}`
  const rows = [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([kind, { done, excused, longestMs }]) =>
      row([
        kind,
        `${done}`,
        (done / seconds).toFixed(1),
        `${excused}`,
        `${Math.round(longestMs)} ms`,
      ]),
    )
  const total = [...counts.values()].reduce((sum, { done }) => sum + done, 0)
  return [
    row(['traffic', 'exchanges', 'a second', 'excused', 'longest']),
    ...rows,
    row(['all', `${total}`, (total / seconds).toFixed(1)]),
  ]
}

/** Bytes that are printed; all of them are in a file. */
const printedBytes = 2_000

/** The violation, its exchange, its bytes, what happened at the time, and how to repeat it. */
export function describeViolation(
  { invariant, exchange, text, bytes }: Violation,
  repeat: string,
  { gateway, accounts }: Scene,
): string[] {
  const [tag = ''] = exchange.split(' ')
  const log = gateway.stderr.split('\n').slice(-20).join('\n')
  const all = [`${invariant}: ${exchange}: ${text}`, '', bytes, '', gateway.stderr].join('\n')
  return [
    `VIOLATION of ${invariant}: ${exchange}`,
    text,
    ...(bytes === '' ? [] : ['received:', bytes.slice(0, printedBytes)]),
    `line of the access log: ${accounts.lineOf(tag)}`,
    'log of the gateway:',
    log,
    `everything: ${writeFindings('violation.txt', all)}`,
    `repeat: ${repeat}`,
  ]
}
