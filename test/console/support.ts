/** The console in tests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { root } from '../hosts/files-server.ts'
import { partPath } from '../support/parts.ts'
import { type ConsolePage, startPage } from './browser.ts'

export const startConsole = (url?: string): Promise<ConsolePage> =>
  startPage(partPath('chromium'), url)

const axePath = join(root, 'node_modules', 'axe-core', 'axe.min.js')

/** What axe-core finds serious or critical: rules, and the elements that break them. */
export async function seriousFaults({ page }: ConsolePage): Promise<string[]> {
  await page.evaluate(readFileSync(axePath, 'utf8'))
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[]
  }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

/** `expect.poll` with the time that a page on a busy machine may need. */
export const eventually = <Value>(read: () => Value | Promise<Value>) =>
  expect.poll(read, { timeout: 30_000 })
