/** The commands `sluice budgets …` beside a gateway that runs, and without one. */
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, type RunningGateway, sluice } from '../support/gateway.ts'
import {
  budget,
  gateway,
  hostOf,
  httpRoute,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
const month = { unit: 'Month', timeZone: 'Europe/Berlin' }
const requests = (amount: number) => ({ unit: 'Requests', amount: `${amount}` })

const manifestsFor = (port: number) => [
  gateway(port),
  staticBackend('main', upstream.port),
  ...['one', 'teams', 'busy', 'shrunk'].map((name) =>
    httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  ),
  budget('one', 'HTTPRoute/one', { limit: requests(3), window: month }),
  budget('teams', 'HTTPRoute/teams', {
    each: 'request.headers["x-team"]',
    limit: requests(2),
    overrides: [{ value: 'research', amount: '4' }],
    window: month,
  }),
  budget('busy', 'HTTPRoute/busy', { limit: requests(20), window: month }),
  budget('shrunk', 'HTTPRoute/shrunk', {
    limit: requests(5),
    window: { type: 'Rolling', unit: 'Day' },
  }),
]

/** Asks a gateway, and runs commands on its ledger. */
function toolsOf(running: RunningGateway, port: number, where: () => readonly string[]) {
  const ask = async (name: string, headers: Record<string, string> = {}) =>
    (await running.send(port, { host: hostOf(name), headers })).status
  const budgets = (command: string, ...args: string[]) =>
    sluice('budgets', command, ...args, ...where())
  const list = async (...args: string[]) =>
    JSON.parse((await budgets('list', '-o', 'json', ...args)).stdout).budgets
  /** Waits until charges are in the ledger: proxies report them every 200 ms. */
  const spent = (name: string, amount: string) =>
    waitFor(`${amount} spent of ${name}`, async () =>
      (await list()).find(
        (one: Record<string, string>) => one.budget === `default/${name}` && one.spent === amount,
      ),
    )
  return { ask, budgets, list, spent }
}

describe('commands on the ledger of `sluice run`', async () => {
  const port = await freePort()
  const running = useGateway(() => ({ manifests: manifestsFor(port), args: ['--workers', '2'] }))
  const { ask, budgets, list, spent } = toolsOf(running, port, () => [
    '--log-file',
    running.logFile,
  ])

  it('list what is spent of each budget', async () => {
    expect([await ask('one'), await ask('one')]).toEqual([200, 200])
    for (const team of ['sales', 'sales', 'research']) await ask('teams', { 'x-team': team })
    await spent('teams', '3')
    expect(await spent('one', '2')).toMatchObject({
      who: 'HTTPRoute one',
      unit: 'Requests',
      limit: '3',
      remaining: '1',
      requests: 2,
      resetsAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT2[23]:00:00Z$/),
    })
    expect(
      (await list()).find(({ budget }: { budget: string }) => budget === 'default/teams'),
    ).toMatchObject({
      who: 'HTTPRoute teams, each request.headers["x-team"]',
      limit: '2',
      spent: '3',
      values: 2,
      exhausted: 1,
    })
    const { stdout } = await budgets('list')
    expect(stdout).toMatch(/^BUDGET +WHO +UNIT +LIMIT +SPENT +RESERVED +REMAINING/)
    expect(stdout).toMatch(/default\/one +HTTPRoute one +Requests +3 +2 +1 +1 +2 /)
  })

  it('list each value, also as CSV', async () => {
    const { stdout } = await budgets('list', '--values', '-o', 'csv')
    const [head, ...rows] = stdout.trim().split('\n')
    expect(head).toBe(
      'budget,who,value,unit,limit,spent,reserved,remaining,requests,values,exhausted,resetsAt',
    )
    const teams = rows.filter((row) => row.startsWith('default/teams'))
    expect(teams.map((row) => row.replace(/,[^,]*$/, ''))).toEqual([
      'default/teams,"HTTPRoute teams, each request.headers[""x-team""]",sales,Requests,2,2,0,0,2,,',
      'default/teams,"HTTPRoute teams, each request.headers[""x-team""]",research,Requests,4,1,3,3,1,,',
    ])
  })

  it('show the balances in the status, as in a cluster', async () => {
    const { stdout } = await sluice('status', '--log-file', running.logFile, '-o', 'json')
    const { objects } = JSON.parse(stdout)
    const of = (name: string) =>
      objects.find(
        (one: Record<string, string>) => one.kind === 'GatewayBudget' && one.name === name,
      )
    expect(of('one').status).toMatchObject({ spent: '2', reserved: '1', remaining: '1' })
    expect(of('teams').status).toMatchObject({
      values: 2,
      highest: [{ value: 'sales', limit: '2', spent: '2', remaining: '0' }, { value: 'research' }],
    })
    const text = await sluice('status', '--log-file', running.logFile)
    expect(text.stdout).toMatch(/default\/one +HTTPRoute one +Requests +3 +2 /)
  })

  it('adjust an exhausted budget of a gateway that runs, which admits again within a second', async () => {
    expect([await ask('one'), await ask('one')]).toEqual([200, 429])
    await spent('one', '3')
    const { code, stdout } = await budgets(
      ...(['adjust', 'one', '--by', '2', '--reason', 'launch week', '--author', 'ann'] as const),
    )
    const adjustedAt = Date.now()
    expect(stdout).toBe(
      'default/one: the amount of this window is 5 Requests; 3 Requests are spent, 2 Requests remain\n',
    )
    expect(code).toBe(0)
    await waitFor('an admitted request', async () => (await ask('one')) === 200)
    expect(Date.now() - adjustedAt).toBeLessThan(1_000)
    expect([await ask('one'), await ask('one')]).toEqual([200, 429])
  })

  it('explain who has spent a budget, who holds allowances, and who adjusted it', async () => {
    await budgets(
      'adjust',
      'default/teams',
      '--value',
      'research',
      '--by',
      '-2',
      '--reason',
      'moved',
    )
    await spent('one', '5')
    const one = await budgets('explain', 'one')
    expect(one.stdout).toContain(
      'default/one: 3 Requests per month (Europe/Berlin)\nrequests to HTTPRoute one\n',
    )
    expect(one.stdout).toMatch(/\n- +5 +5 +0 +0 +5\n/)
    expect(one.stdout).toMatch(/\n- +local~\w+ +5 +5 +20\S+Z +20\S+Z\n/)
    expect(one.stdout).toMatch(/\n20\S+Z +- +\+2 +ann +launch week\n/)
    const research = await budgets('explain', 'teams', '--value', 'research', '-o', 'json')
    expect(JSON.parse(research.stdout)).toMatchObject({
      name: 'default/teams',
      values: [{ value: 'research', limit: '2', spent: '1', remaining: '1', requests: 1 }],
      charges: [{ value: 'research', charged: '1' }],
      allowances: [{ value: 'research', amount: '1' }],
      adjustments: [{ value: 'research', amount: '-2', reason: 'moved' }],
    })
    expect(await ask('teams', { 'x-team': 'research' })).toBe(200)
    expect(await ask('teams', { 'x-team': 'research' })).toBe(429)
  })

  it('take away less than is free, more than is free, and give it back', async () => {
    expect(await ask('shrunk')).toBe(200)
    await spent('shrunk', '1')
    await budgets('adjust', 'shrunk', '--by', '-9', '--reason', 'a')
    await waitFor('a refusal', async () => (await ask('shrunk')) === 429)
    const row = (await list()).find(({ budget }: { budget: string }) => budget === 'default/shrunk')
    expect(row).toMatchObject({ limit: '-4', remaining: '0' })
    await budgets('adjust', 'shrunk', '--by', '10', '--reason', 'b')
    await waitFor('an admitted request', async () => (await ask('shrunk')) === 200)
  })

  it('lose no adjustment and no charge if many run at once beside requests', async () => {
    const adjusted = Array.from({ length: 6 }, (_, at) =>
      budgets('adjust', 'busy', '--by', '5', '--reason', `r${at}`),
    )
    let admitted = 0
    let isDone = false
    const asking = Array.from({ length: 4 }, async () => {
      while (!isDone) if ((await ask('busy')) === 200) admitted++
    })
    expect((await Promise.all(adjusted)).map(({ code, stderr }) => [code, stderr])).toEqual(
      adjusted.map(() => [0, '']),
    )
    await waitFor('all that was added', () => admitted === 50)
    isDone = true
    await Promise.all(asking)
    expect(admitted).toBe(50)
    expect(await spent('busy', '50')).toMatchObject({ limit: '50', remaining: '0' })
  })

  it.each([
    [
      ['adjust', 'none', '--by', '1', '--reason', 'x'],
      'there is no GatewayBudget none; there are default/busy, default/one, default/shrunk, default/teams',
    ],
    [
      ['adjust', 'one', '--by', '1.5', '--reason', 'x'],
      '--by 1.5 is not a whole number of Requests',
    ],
    [['adjust', 'one', '--by', '0', '--reason', 'x'], '--by 0 changes nothing'],
    [
      ['adjust', 'one', '--value', 'a', '--by', '1', '--reason', 'x'],
      'GatewayBudget default/one has no each, so it has no values; omit --value',
    ],
    [
      ['adjust', 'teams', '--by', '1', '--reason', 'x'],
      'GatewayBudget default/teams has an amount for each request.headers["x-team"]; name one with --value',
    ],
    [
      ['explain', 'default/none'],
      'there is no GatewayBudget default/none; there are default/busy, default/one, default/shrunk, default/teams',
    ],
  ])('report what is wrong with %j', async ([command = '', ...args], message) => {
    const { code, stderr } = await budgets(command, ...args)
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it('adjust a budget while no gateway runs, for the next one', async () => {
    await running.stop()
    const { code } = await budgets('adjust', 'one', '--by', '1', '--reason', 'while stopped')
    expect(code).toBe(0)
    await running.start()
    expect([await ask('one'), await ask('one')]).toEqual([200, 429])
  })

  it('append little at the end of a gateway: it is not granted again what it gives back', async () => {
    const events = async () => JSON.parse((await budgets('verify', '-o', 'json')).stdout).events
    const before = await events()
    await running.stop()
    expect((await events()) - before).toBeLessThan(6)
  })

  it('verify the ledger, and say where a snapshot differs from the events', async () => {
    const good = await budgets('verify')
    expect([good.code, good.stdout]).toEqual([
      0,
      expect.stringMatching(/snapshots +[1-9]\d* compared, 0 differ/),
    ])
    const file = new DatabaseSync(`${running.logFile}.ledger`)
    // One report may have entries of several values, not every entry has a charge, and the two
    // requests of this value may stand in one report or in two: then 7 becomes 8.
    const charge = /("value":"sales",[^}]*"charged":")(\d+)/
    const events = file.prepare('SELECT position, body FROM events ORDER BY position').all()
    const charged = events.find(({ body }) => charge.test(`${body}`))
    const forged = `${charged?.body}`.replace(charge, '$17')
    file
      .prepare('UPDATE events SET body = ? WHERE position = ?')
      .run(forged, charged?.position ?? null)
    file.close()
    const { code, stdout } = await budgets('verify')
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /snapshot \d+: budgets default\/teams balances sales holdings local~\w+ charged: stored "\d", folded "[78]"/,
    )
  })

  it('report a log without a ledger', async () => {
    const other = await sluice('budgets', 'list', '--log-file', `${running.logFile}.ledger`)
    expect([other.code, other.stderr]).toEqual([
      2,
      expect.stringContaining('has no ledger of budgets'),
    ])
  })
})

describeWithParts(['nats-server'], 'commands on a ledger on NATS', async () => {
  const port = await freePort()
  const nats = useFixture(startNatsServer, (server) => server.remove())
  const running = useGateway(() => ({ manifests: manifestsFor(port), nats: nats.url }))
  const { ask, budgets, spent } = toolsOf(running, port, () => ['--nats', nats.url])

  it('report a server without a ledger, list, adjust, explain and verify', async () => {
    // Several proxies may share the ledger, so an allowance may be missing for a moment.
    for (let at = 0; at < 3; at++) {
      await waitFor('an admitted request', async () => (await ask('one')) === 200)
    }
    await spent('one', '3')
    await waitFor('a refusal', async () => (await ask('one')) === 429)
    await budgets('adjust', 'one', '--by', '1', '--reason', 'more', '--author', 'bob')
    await waitFor('an admitted request', async () => (await ask('one')) === 200)
    await spent('one', '4')
    expect((await budgets('explain', 'one')).stdout).toMatch(/\+1 +bob +more\n/)
    expect(await budgets('verify')).toMatchObject({ code: 0 })
  })
})
