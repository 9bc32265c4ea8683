/** The report of `sluice import`. */

import type { Conversion, ImportedManifest, ImportFinding } from '../../import/index.ts'
import { printable } from '../shared/printable.ts'

const titles: Readonly<Record<ImportFinding['kind'], string>> = {
  protection: 'protection lost',
  route: 'route lost',
  looser: 'looser',
  stricter: 'stricter',
  lost: 'not converted',
  changed: 'changed',
  secret: 'secret',
}

/** `file:line:column: title: object: field: reason`, lost protections first. */
export function formatReport({ findings, omitted }: Conversion): string[] {
  const order = Object.keys(titles)
  const sorted = findings.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
  const lines = sorted.map(({ kind, file, line, column, object, field, reason }) =>
    [`${file}:${line}:${column}`, titles[kind], object, field, reason]
      .filter((part) => part !== '')
      .map(printable)
      .join(': '),
  )
  return omitted === 0 ? lines : [...lines, `${omitted} more are not listed`]
}

/** How many objects were created, and how many findings of each kind there are. */
export function summarize(
  source: string,
  manifests: readonly ImportedManifest[],
  { counts }: Conversion,
): string {
  const kinds = Map.groupBy(manifests, ({ kind }) => kind)
  const objects = [...kinds].map(([kind, list]) => `${list.length} ${kind}`).join(', ')
  const count = (kind: ImportFinding['kind']) => counts.get(kind) ?? 0
  const unless0 = (kind: ImportFinding['kind'], what: string) =>
    count(kind) > 0 ? [`${count(kind)} ${what}`] : []
  const parts = [
    `${count('protection')} protections lost`,
    ...unless0('route', 'routes lost'),
    ...unless0('looser', 'looser'),
    ...unless0('stricter', 'stricter'),
    `${count('lost')} settings not converted`,
    `${count('changed')} changed`,
    `${count('secret')} secrets`,
  ]
  return `${source}: ${objects || 'no object'}; ${parts.join(', ')}`
}
