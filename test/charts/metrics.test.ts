/** The metrics that the dashboards and alerts of the chart read. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { root } from '../hosts/files-server.ts'

const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const pages = ['docs/metrics.md', 'docs/metrics-xds.md'].map(textOf).join('')
const chart = join('charts', 'sluice')
const dashboards = globSync('dashboards/*.json', { cwd: join(root, chart) })
const known = new Set(Array.from(pages.matchAll(/^\| `(\w+)`/gm), ([, name]) => name))

it.each([...dashboards, 'alerts.yaml'])('finds every metric of %s in the documentation', (file) => {
  const text = textOf(join(chart, file))
  const used = new Set(
    Array.from(text.matchAll(/\bsluice_\w+/g), ([name]) =>
      known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
    ),
  )
  expect(used.size).toBeGreaterThan(5)
  expect([...used].filter((name) => !known.has(name))).toEqual([])
})

it('names each alert once, with a summary and how severe it is', () => {
  const rules = parse(textOf(join(chart, 'alerts.yaml')))
  expect(new Set(rules.map(({ alert }: { alert: string }) => alert)).size).toBe(rules.length)
  for (const { annotations, labels, expr } of rules) {
    expect([annotations.summary, expr]).toEqual([expect.any(String), expect.any(String)])
    expect(['warning', 'critical']).toContain(labels.severity)
  }
})
