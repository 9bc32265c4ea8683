/** The report of `sluice import`. */

import type { Conversion, ImportedManifest, ImportFinding } from '../../import/index.ts'
import { printable } from '../shared/printable.ts'

const titles: Readonly<Record<ImportFinding['kind'], string>> = {
  protection: 'protection lost',
  route: 'route lost',
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
  { findings, omitted, lostProtections, lostRoutes, stricterLimits }: Conversion,
): string {
  const kinds = Map.groupBy(manifests, ({ kind }) => kind)
  const objects = [...kinds].map(([kind, list]) => `${list.length} ${kind}`).join(', ')
  const count = (kind: ImportFinding['kind']) =>
    findings.filter((entry) => entry.kind === kind).length
  const routes = lostRoutes > 0 ? `${lostRoutes} routes lost, ` : ''
  const stricter = stricterLimits > 0 ? `${stricterLimits} stricter, ` : ''
  const counts = `${lostProtections} protections lost, ${routes}${stricter}${count('lost') + omitted} settings not converted, ${count('changed')} changed, ${count('secret')} secrets`
  return `${source}: ${objects || 'no object'}; ${counts}`
}
