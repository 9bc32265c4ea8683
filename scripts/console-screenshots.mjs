// Takes the pictures of the console in docs/images: the views of a log in which the deletion of a ReferenceGrant
// breaks a route, and the views of a running gateway. With `--review FOLDER`, takes every view of that gateway there
// instead, in light and dark and at three widths. Needs `npm run build` and Chromium on PATH.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { incidentLog, startPage } from '../test/console/browser.ts'
import { clientKey, startLiveGateway } from './console/live-gateway.mjs'

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

async function takeOfLog() {
  const { page, openLog, show, close } = await startPage(program)
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
}

async function takeOfGateway() {
  const gateway = await startLiveGateway()
  const { page, show, close } = await startPage(program, gateway.url)
  await page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
  const take = (name) => page.screenshot({ path: join(folder, `console-${name}.png`) })
  await show('#/requests')
  const refused = page.locator('.row', { hasText: '/shop/admin/users' })
  await refused.waitFor()
  await take('requests')
  await refused.getByRole('link').first().click()
  await page.getByText('For another outcome').waitFor()
  await take('request')
  await show('#/try')
  const curl = `curl http://127.0.0.1:${gateway.port}/shop/admin/users`
  await page.getByLabel('Request, as a curl command').fill(curl)
  await page.getByRole('button', { name: 'Show its way' }).click()
  await page.getByRole('region', { name: 'Now', exact: true }).getByText('answer 403').waitFor()
  await take('try')
  await show('#/models')
  await page
    .getByRole('region', { name: 'Usage', exact: true })
    .getByText('gpt-4o-mini')
    .first()
    .waitFor()
  await take('models')
  await show('#/tools')
  await page.getByText('search_orders').first().waitFor()
  await take('tools')
  await show('#/guards')
  await page.getByRole('region', { name: 'Decisions in this time' }).getByText('Mask').waitFor()
  await page.locator('figure canvas').first().waitFor()
  await take('guards')
  await show('#/keys')
  await page.getByText('checkout').first().waitFor()
  await take('keys')
  await show('#/playground?tab=chat')
  await page.getByLabel('Key of the client').fill(clientKey)
  await page.getByLabel('Model', { exact: true }).fill('gpt-4o-mini')
  await page.getByLabel('Message', { exact: true }).fill('Write to ines@example.com, please.')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Complete after').waitFor()
  await take('chat')
  await show('#/topology')
  await page.locator('.node.problem').first().waitFor()
  await take('live-topology')
  await show('#/')
  // The first charts, and the failures of the route whose backend is down.
  await page.locator('figure canvas').first().waitFor()
  await page.locator('.finding.problem', { hasText: 'payments' }).waitFor()
  await take('live')
  gateway.holdChange()
  await show('#/held')
  await page.getByRole('region', { name: /^Change \d+$/ }).waitFor()
  await take('held')
  await close()
  await gateway.close()
}

/** Every view of a running gateway, for a review by eye. */
const reviewed = {
  overview: '#/',
  topology: '#/topology',
  requests: '#/requests',
  timeline: '#/timeline',
  held: '#/held',
  try: '#/try',
  chat: '#/playground?tab=chat',
  call: '#/playground?tab=tools',
  masks: '#/playground',
  models: '#/models',
  keys: '#/keys',
  tools: '#/tools',
  guards: '#/guards',
  objects: '#/objects',
  object: '#/object/HTTPRoute/default/shop',
}

async function review(into) {
  mkdirSync(into, { recursive: true })
  const gateway = await startLiveGateway()
  const { page, show, close } = await startPage(program, gateway.url)
  await page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
  gateway.holdChange()
  await page.getByRole('region', { name: 'Held changes' }).waitFor()
  for (const [name, hash] of Object.entries(reviewed)) {
    await show(hash)
    for (const width of [360, 1280, 2560]) {
      await page.setViewportSize({ width, height: width === 360 ? 780 : 900 })
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme })
        // Views load what they show, and charts are drawn again for another width.
        await page.waitForLoadState('networkidle', { timeout: 2_000 }).catch(() => undefined)
        await page.screenshot({ path: join(into, `${name}-${width}-${colorScheme}.png`) })
      }
    }
  }
  await close()
  await gateway.close()
}

const { review: into } = parseArgs({ options: { review: { type: 'string' } } }).values
if (into === undefined) {
  mkdirSync(folder, { recursive: true })
  await takeOfLog()
  await takeOfGateway()
} else await review(into)
