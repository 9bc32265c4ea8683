/** `sluice budgets purge` and `erase`: what is removed from the ledger, and that sums stay. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
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
const person = 'ann.example@people.test'
const requests = (amount: number) => ({ unit: 'Requests', amount: `${amount}` })
const window = { unit: 'Month' }

const manifestsFor = (port: number) => [
  gateway(port),
  staticBackend('main', upstream.port),
  httpRoute('users', {
    hostnames: [hostOf('users')],
    rules: [{ backendRefs: [toBackend('main')] }],
  }),
  budget('users', 'HTTPRoute/users', {
    each: 'request.headers["x-user"]',
    limit: requests(10),
    overrides: [{ value: 'boss', amount: '20' }],
    window,
  }),
  budget('days', 'HTTPRoute/users', {
    each: 'request.headers["x-user"]',
    limit: requests(1_000),
    window: { type: 'Rolling', unit: 'Day' },
  }),
]

function toolsOf(running: RunningGateway, port: number, where: () => readonly string[]) {
  const ask = async (user: string) =>
    (await running.send(port, { host: hostOf('users'), headers: { 'x-user': user } })).status
  const budgets = (...args: string[]) => sluice('budgets', ...args, ...where())
  const list = async (...args: string[]): Promise<Record<string, string>[]> =>
    JSON.parse((await budgets('list', ...args, '-o', 'json')).stdout).budgets
  const spent = (amount: string) =>
    waitFor(`${amount} spent`, async () => (await list()).every((one) => one.spent === amount))
  const paid = (user: string) =>
    waitFor(`${user} is admitted`, async () => (await ask(user)) === 200)
  return { ask, budgets, list, spent, paid }
}

/** The files of a folder that contain a text. */
const filesWith = (folder: string, text: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => readFileSync(file).includes(text))

describe('the ledger of `sluice run`', async () => {
  const port = await freePort()
  const running = useGateway(() => ({ manifests: manifestsFor(port) }))
  const { ask, budgets, list, spent, paid } = toolsOf(running, port, () => [
    '--log-file',
    running.logFile,
  ])
  const ledgerFiles = () =>
    filesWith(dirname(running.logFile), person).filter((file) => file.includes('.ledger'))

  it('loses old events, and no sum', async () => {
    for (const user of [person, person, 'bob', 'boss']) await paid(user)
    await spent('4')
    const before = await list('--values')
    const { code, stdout } = await budgets('purge', '--before', '0s')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^removed [1-9]\d* events before 20/)])
    expect(await list('--values')).toEqual(before)
    await paid('bob')
    await spent('5')
    const verified = await budgets('verify', '-o', 'json')
    expect(verified.code).toBe(0)
    expect(JSON.parse(verified.stdout).from).toBeGreaterThan(1)
    const again = await budgets('purge', '--before', '2020-01-01')
    expect(again.stdout).toMatch(/^nothing to remove/)
  })

  it('has a person in no file after an erasure beside the gateway, which changes no sum', async () => {
    await paid(person)
    await spent('6')
    expect(ledgerFiles()).not.toEqual([])
    const { code, stdout } = await budgets(
      ...['erase', '--account', person, '--reason', 'asked for', '--author', 'dpo'],
      ...['--issuer', 'https://idp.example.com', '--sub', 'ann', '--for', '1h'],
    )
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^ended: .*; 0 grants .*\nerased: .* as erased-[0-9a-f-]+;/),
    ])
    const [pseudonym = ''] = /erased-[0-9a-f-]+/.exec(stdout) ?? []
    expect(ledgerFiles()).toEqual([])
    const values = await list('--values')
    expect(
      values.filter((one) => one.value === pseudonym).map(({ budget, spent }) => [budget, spent]),
    ).toEqual([
      ['default/days', '3'],
      ['default/users', '3'],
    ])
    expect((await list()).map((one) => one.spent)).toEqual(['6', '6'])
    expect(await budgets('verify')).toMatchObject({ code: 0 })
    const log = await budgets('verify', '-o', 'json')
    expect(JSON.parse(log.stdout).different).toEqual([])
  })

  it('goes on: others are admitted, and the person is refused until the window ends', async () => {
    expect(await ask('bob')).toBe(200)
    expect(await ask(person)).toBe(429)
    await spent('7')
    await running.stop()
    expect(ledgerFiles()).toEqual([])
    expect(await budgets('verify')).toMatchObject({ code: 0 })
    await running.start()
    expect(await ask('bob')).toBe(200)
    await spent('8')
  })

  it.each([
    ['boss', 2, 'GatewayBudget default/users has an override for "boss"; remove it first'],
    ['nobody', 1, 'no budget has "nobody"'],
  ])('does not erase %s', async (account, code, text) => {
    const refused = await budgets('erase', '--account', account, '--reason', 'x')
    expect([refused.code, refused.stdout + refused.stderr]).toEqual([
      code,
      expect.stringContaining(text),
    ])
  })

  it('is erased at once if the gateway was killed, whose allowances nobody can use', async () => {
    await paid('carl')
    await spent('9')
    await running.kill()
    expect(await budgets('erase', '--account', 'carl', '--reason', 'x')).toMatchObject({ code: 0 })
    await running.start()
    await paid('bob')
    await spent('10')
  })
})

/** The messages of a server's ledger that contain a text. Its snapshots are a stream, too. */
async function ledgerMessagesWith(url: string, text: string): Promise<string[]> {
  const connection = await connect({ servers: url })
  const { streams } = await jetstreamManager(connection)
  const found: string[] = []
  for await (const { config, state } of streams.list()) {
    if (!/ledger/i.test(config.name)) continue
    for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
      const message = await streams.getMessage(config.name, { seq })
      if (message?.string().includes(text)) found.push(`${config.name} ${seq}`)
    }
  }
  await connection.close()
  return found
}

describeWithParts(['nats-server'], 'the ledger on NATS', async () => {
  const port = await freePort()
  const nats = useFixture(startNatsServer, (server) => server.remove())
  const running = useGateway(() => ({ manifests: manifestsFor(port), nats: nats.url }))
  const { budgets, list, spent, paid } = toolsOf(running, port, () => ['--nats', nats.url])

  it('has a person in no message after an erasure beside the gateway', async () => {
    for (const user of [person, 'bob', person]) await paid(user)
    await spent('3')
    expect(await ledgerMessagesWith(nats.url, person)).not.toEqual([])
    const { code, stderr } = await budgets('erase', '--account', person, '--reason', 'asked for')
    expect([code, stderr]).toEqual([0, expect.stringContaining('Files of the NATS server keep')])
    expect((await list()).map((one) => one.spent)).toEqual(['3', '3'])
    await paid('bob')
    await spent('4')
    expect(await budgets('verify')).toMatchObject({ code: 0 })
    await running.stop()
    expect(await ledgerMessagesWith(nats.url, person)).toEqual([])
  })
})
