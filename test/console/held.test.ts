/** Changes that `changeProtection` holds, and people who approve and reject them in the console. */
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, policy } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

const denying = (method: string) =>
  manifest(
    policy('access', 'HTTPRoute/app', {
      traffic: {
        authorization: {
          action: 'Deny',
          policy: { matchExpressions: [`request.method == "${method}"`] },
        },
      },
    }),
  )

describeWithParts(['chromium'], 'the console of a gateway that holds changes', async () => {
  const port = await freePort()
  const gw = useGateway(() => ({
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        httpRoute('app', { rules: [{}] }),
        policy('app', 'HTTPRoute/app', { traffic: { directResponse: { status: 201 } } }),
      ),
    },
    args: [
      ...['--console-address', '127.0.0.1:0', '--console-actions', 'true'],
      ...['--change-protection', 'hold', '--record', 'all'],
    ],
  }))
  let console: ConsolePage
  let clicks = 0
  const main = () => console.page.locator('main')
  const banner = () => console.page.getByRole('region', { name: 'Held changes' })
  const click = async (target: Locator) => {
    clicks++
    await target.click()
  }
  const decide = async (place: Locator, button: string) => {
    await place.getByLabel('Reason').fill('agreed')
    await click(place.getByRole('button', { name: button, exact: true }))
  }
  const becomes = (status: number) =>
    gw.sendUntil(port, {}, (response) => response.status === status)
  const isHeld = () => eventually(() => banner().textContent()).toMatch(/access is held/)
  const decisions = async () =>
    (await sluice('log', '-o', 'json', '--log-file', gw.logFile)).stdout
      .split('\n')
      .filter((line) => /change\.(approved|rejected)/.test(line))
      .map((line) => JSON.parse(line).event.data)

  beforeAll(async () => {
    const url = await waitFor('the URL', () => /^console: (http:\S+)$/m.exec(gw.stderr)?.[1])
    console = await startConsole(url)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    for (let count = 0; count < 20; count++) await becomes(201)
  })
  afterAll(() => console?.close())

  it('shows in one click which requests a held change affects, and approves it in two', async () => {
    gw.write('access.yaml', denying('GET'))
    await isHeld()
    expect(await banner().textContent()).toMatch(
      /A change of GatewayPolicy default\/access is held: \d+ of \d+ recorded requests to Gateway default\/edge/,
    )
    clicks = 0
    await click(banner().getByRole('link', { name: 'See what waits and why' }))
    const change = main().getByRole('region', { name: /^Change \d+$/ })
    await eventually(() => change.textContent()).toMatch(/maxRefused: \d+ of \d+/)
    expect(clicks).toBe(1)
    expect(await change.locator('tr', { hasText: 'deny 403' }).textContent()).toMatch(
      /^answer 201deny 403GatewayPolicy default\/access was addedGET .*\d\d$/,
    )
    expect(await change.locator('.status-diff').textContent()).toContain('+   name: access')
    expect(await seriousFaults(console)).toEqual([])
    await decide(change, 'Approve')
    await becomes(403)
    expect(clicks).toBe(2)
    await eventually(() => main().textContent()).toContain('Nothing waits')
    expect(await banner().count()).toBe(0)
  })

  it('rejects a change in the banner of any page, and shows it at past moments', async () => {
    await console.show('#/')
    // It would admit the requests that the policy refuses.
    gw.write('access.yaml', denying('POST'))
    await isHeld()
    await click(banner().getByText(/^Approve or reject change/))
    await decide(banner(), 'Approve')
    await becomes(201)
    await eventually(() => banner().count()).toBe(0)
    gw.write('access.yaml', denying('GET'))
    await isHeld()
    const position = /event (\d+)/.exec((await banner().textContent()) ?? '')?.[1]
    clicks = 0
    await click(banner().getByText(`Approve or reject change ${position}`))
    expect(await seriousFaults(console)).toEqual([])
    await decide(banner(), 'Reject')
    await eventually(() => banner().textContent()).toMatch(/was rejected by .*: agreed/)
    expect(clicks).toBe(2)
    expect((await gw.send(port)).status).toBe(201)
    await console.show(`#/held@${position}`)
    await eventually(() => banner().textContent()).toContain('is held')
    expect(await main().textContent()).toContain('GatewayPolicy default/access')
    expect(await main().getByRole('button', { name: 'Reject', exact: true }).count()).toBe(0)
  })

  it('approves everything in an emergency, and names the author of each decision', async () => {
    await console.show('#/held')
    await eventually(() => main().textContent()).toMatch(/Rejected by .*: agreed\. It waits/)
    const all = main().getByRole('region', { name: 'Approve everything' })
    await decide(all, 'Approve everything')
    await becomes(403)
    const made = await decisions()
    expect(made).toMatchObject([
      { held: expect.anything() },
      { held: expect.anything() },
      { held: expect.anything() },
      { emergency: true },
    ])
    expect(new Set(made.map(({ author, reason }) => `${author} ${reason}`)).size).toBe(1)
  })
})
