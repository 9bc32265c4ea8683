/**
 * Compares the simulator with a real gateway: random configurations and traffic go through `sluice run`, which
 * records every request. Then each record is simulated with the log of that run, and each request as it was
 * sent with the manifests.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as secureRequest } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { VersionedResource } from '../../../src/ground/model/resources.ts'
import { readFolder } from '../../../src/past/decisions/read.ts'
import type { RecordedDecision } from '../../../src/past/decisions/record.ts'
import { createFold } from '../../../src/past/replay/index.ts'
import { requestOf, type SimulatedRequest, Simulator } from '../../../src/past/simulate/index.ts'
import { foldRecording, readRecording } from '../../../src/tools/cli/recording/recording.ts'
import { Authority } from '../../support/certificates.ts'
import { freePort, RunningGateway } from '../../support/gateway.ts'
import {
  answerOf,
  keepAliveAgent,
  send,
  type TestRequest,
  type TestResponse,
} from '../../support/http-client.ts'
import { inSeconds, keySetOf, sign, signingKey } from '../../support/identity-provider.ts'
import { gateway, httpRoute, type Manifest, manifest, policy } from '../../support/manifests.ts'
import { startUpstream } from '../../support/upstream.ts'
import { completes, startVendorA } from '../../support/vendors/vendor-a.ts'
import { waitFor } from '../../support/wait-for.ts'
import { Choices } from './choices.ts'
import { hosts, randomConfiguration, type Surroundings } from './configurations.ts'
import { Differences, type Sent } from './differences.ts'
import { randomRequest, type Tokens } from './traffic.ts'

interface Round {
  readonly manifests: readonly Manifest[]
  readonly sent: readonly Sent[]
}

interface Ports {
  readonly port: number
  readonly tlsPort: number
}

export interface Comparison {
  readonly requests: number
  /** Differences between simulations and what the gateway did. */
  readonly differences: readonly string[]
  /** Number of undecided simulations, of records and of requests as they were sent. */
  readonly undecidedRecords: number
  readonly undecidedRequests: number
  readonly answered: number
}

export async function compareRandomly(
  seed: number,
  configurations: number,
  requestsEach: number,
): Promise<Comparison> {
  const choices = new Choices(seed)
  const upstream = await startUpstream('upstream', (_, response) => {
    response.setHeader('x-from', 'upstream')
    response.end('ok')
  })
  const authorizer = await startUpstream('authorizer', ({ headers }, response) => {
    response.statusCode = headers.authorization === undefined ? 403 : 200
    response.end()
  })
  const port = await freePort()
  const tlsPort = await freePort()
  const marker = await freePort()
  const model = await startVendorA()
  model.answer = completes('Hello')
  const authority = new Authority()
  const key = await signingKey('one')
  const issuer = 'https://idp.example.com'
  const around: Surroundings = {
    port,
    tlsPort,
    certificate: authority.issue([...hosts, 'unknown.test']),
    upstream: upstream.port,
    model: model.port,
    nobody: await freePort(),
    authorizer: authorizer.port,
    keySet: JSON.stringify(keySetOf(key)),
    issuer,
  }
  const claims = { iss: issuer, sub: 'ann', group: 'sales', exp: inSeconds(86_400) }
  const tokens = {
    good: await sign(key, claims),
    bad: await sign(await signingKey('one'), claims),
  }
  const records = mkdtempSync(join(tmpdir(), 'sluice-records-'))
  const running = new RunningGateway({
    manifests: { 'all.yaml': manifest(...marked([], marker, 'none')) },
    args: ['--record', 'all', '--record-dir', records, '--workers', '1'],
  })
  try {
    await running.start()
    const rounds: Round[] = []
    for (let at = 0; at < configurations; at++) {
      const manifests = randomConfiguration(choices, around)
      running.write('all.yaml', manifest(...marked(manifests, marker, `${at}`)))
      await running.sendUntil(marker, {}, ({ body }) => body === `round ${at}`)
      await waitFor('the listeners', async () => (await accepts(port)) && accepts(tlsPort))
      const sent = await sendRandomly(choices, { port, tlsPort }, `${at}`, requestsEach, tokens)
      rounds.push({ manifests, sent })
    }
    await running.stop()
    return await compare(rounds, records, running.logFile)
  } finally {
    await running.dispose()
    rmSync(records, { recursive: true })
    authority.dispose()
    await Promise.all([upstream.close(), authorizer.close(), model.close()])
  }
}

/** A request would count for rate limits. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.end()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Adds a Gateway that tells which configuration is in force. */
function marked(manifests: readonly Manifest[], port: number, round: string): readonly Manifest[] {
  return [
    ...manifests,
    gateway(port, {}, 'marker'),
    httpRoute('marker', { parentRefs: [{ name: 'marker' }], rules: [{}] }),
    policy('marker', 'HTTPRoute/marker', {
      traffic: { directResponse: { status: 200, body: `round ${round}` } },
    }),
  ]
}

async function sendRandomly(
  choices: Choices,
  { port, tlsPort }: Ports,
  round: string,
  count: number,
  tokens: Tokens,
): Promise<Sent[]> {
  const agent = keepAliveAgent(1)
  const sent: Sent[] = []
  for (let at = 0; at < count; at++) {
    const id = `${round}-${at}`
    const request = randomRequest(choices, id, tokens)
    const isSecure = choices.chance(0.25)
    const response = isSecure
      ? await sendSecurely(tlsPort, request, serverNameOf(choices, request))
      : await send(port, { ...request, agent })
    sent.push({ id, request, port: isSecure ? tlsPort : port, isSecure, response })
  }
  agent.destroy()
  return sent
}

/** Some clients reuse a connection that was made for another host. */
const serverNameOf = (choices: Choices, { host }: TestRequest) =>
  choices.chance(0.1) ? 'a.example.com' : host

/** Sends over TLS. */
function sendSecurely(
  port: number,
  request: TestRequest,
  servername: string | undefined,
): Promise<TestResponse> {
  const { method, path, host, headers, body } = request
  const outgoing = secureRequest({
    host: '127.0.0.1',
    port,
    method,
    path,
    servername,
    rejectUnauthorized: false,
    agent: false,
    headers: { ...(host !== undefined && { host }), ...headers },
  })
  outgoing.end(body)
  return answerOf(outgoing)
}

async function compare(
  rounds: readonly Round[],
  records: string,
  logFile: string,
): Promise<Comparison> {
  const differences = new Differences()
  const decisions = [...readFolder(records)].flatMap((read) => {
    if ('problem' in read) throw new Error(read.problem.message)
    return /^\d+-\d+$/.test(read.decision.id) ? [read.decision] : []
  })
  await compareRecords(decisions, logFile, differences)
  const byId = new Map(decisions.map((decision) => [decision.id, decision]))
  for (const round of rounds) {
    differences.beginRound()
    await compareRequests(round, byId, differences)
  }
  const { all, undecidedRecords, undecidedRequests, answered } = differences
  return {
    requests: decisions.length,
    differences: all,
    undecidedRecords,
    undecidedRequests,
    answered,
  }
}

/** Simulates the records with the state at the position of each. */
async function compareRecords(
  decisions: readonly RecordedDecision[],
  logFile: string,
  differences: Differences,
): Promise<void> {
  const { events, derivation, extent } = await readRecording({ logFile }, () => undefined)
  const fold = createFold(derivation, extent.base)
  const byPosition = Map.groupBy(decisions, ({ position }) => position)
  let next = 0
  for (const [position, group] of [...byPosition].sort(([a], [b]) => a - b)) {
    for (; (events[next]?.position ?? Number.POSITIVE_INFINITY) <= position; next++) {
      const event = events[next]
      if (event !== undefined) fold.apply(event)
    }
    await withSimulator(fold.resources(), async (simulator) => {
      for (const decision of group) {
        differences.ofRecord(decision, await simulator.simulate(requestOf(decision)))
      }
    })
  }
}

async function compareRequests(
  { manifests, sent }: Round,
  records: ReadonlyMap<string, RecordedDecision>,
  differences: Differences,
): Promise<void> {
  await withSimulator(await resourcesOf(manifests), async (simulator) => {
    for (const one of sent) {
      differences.ofRequest(one, records.get(one.id), await simulator.simulate(asSimulated(one)))
    }
  })
}

async function withSimulator(
  resources: readonly VersionedResource[],
  use: (simulator: Simulator) => Promise<void>,
): Promise<void> {
  const simulator = await Simulator.open(resources)
  try {
    await use(simulator)
  } finally {
    simulator.close()
  }
}

/** The request with everything that the client sent. */
function asSimulated({ request, port, isSecure }: Sent): SimulatedRequest {
  const { method = 'GET', host = '', path = '/', headers = {}, body } = request
  const [bare = '/', ...query] = path.split('?')
  const fields = Object.entries(headers).map(([name, value]) => ({ name, value: String(value) }))
  // Node sends these besides.
  fields.push({ name: 'connection', value: 'keep-alive' })
  if (body !== undefined) fields.push({ name: 'content-length', value: `${body.length}` })
  return {
    method,
    host,
    path: bare,
    ...(query.length > 0 && { query: query.join('?') }),
    scheme: isSecure ? 'https' : 'http',
    port,
    source: { address: '127.0.0.1', port: 1 },
    headers: fields,
    body: Buffer.from(body ?? ''),
  }
}

async function resourcesOf(objects: readonly Manifest[]): Promise<readonly VersionedResource[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-property-'))
  try {
    writeFileSync(join(folder, 'all.yaml'), manifest(...objects))
    const recording = await readRecording({ file: [folder] }, () => undefined)
    return [...recording.secrets, ...(await foldRecording(recording)).resources()]
  } finally {
    rmSync(folder, { recursive: true })
  }
}
