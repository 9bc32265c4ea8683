// Takes the pictures of the console in docs/images: every view, from the log of an incident in which the
// deletion of a ReferenceGrant breaks a route. Needs `npm run build` and Chromium on PATH.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { incidentLog, startPage } from '../test/console/browser.ts'

const folder = join(import.meta.dirname, '..', 'docs', 'images')

/** Name of each picture, and what it shows. */
const pictures = [
  ['overview', '#/'],
  ['topology', '#/topology'],
  ['objects', '#/objects'],
  ['object', '#/object/HTTPRoute/shop/cart?expect=ResolvedRefs'],
  ['policies', '#/object/HTTPRoute/shop/cart?tab=policies'],
  ['manifest', '#/object/HTTPRoute/shop/cart?tab=manifest'],
  ['timeline', '#/timeline'],
  ['event', '#/'],
  ['playground', '#/playground'],
]

const program = execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim()
const { page, openLog, show, close } = await startPage(program)
mkdirSync(folder, { recursive: true })
await openLog('last-night.jsonl', await incidentLog())
for (const [name, hash] of pictures) {
  await show(hash)
  // The event that broke the route, found as a reader finds it.
  if (name === 'event') {
    await page.locator('.finding a.event').first().click()
    await page.locator('.status-diff').waitFor()
  }
  if (name === 'object') await page.locator('.flips li').first().waitFor()
  if (name === 'manifest') await page.locator('.cm-content').waitFor()
  if (name === 'playground') await page.locator('#masked mark').first().waitFor()
  await page.screenshot({ path: join(folder, `console-${name}.png`) })
}
await close()
