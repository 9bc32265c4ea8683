/** Decision records of a world, and whether they say what happened. */
import { FieldDigests } from '../../src/engines/core/field-digests.ts'
import type { IoCore } from '../../src/engines/core/io-core.ts'
import type { HeaderReferences } from '../../src/gateway/proxy/config/header-references.ts'
import { ReceivedHeaders } from '../../src/gateway/proxy/decisions/received-headers.ts'
import { DecisionRecorder } from '../../src/gateway/proxy/decisions/recorder.ts'
import { type BlockSink, DecisionLog } from '../../src/past/decisions/decision-log.ts'
import { readBlocks } from '../../src/past/decisions/read.ts'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { requestOf, type Simulation, Simulator } from '../../src/past/simulate/index.ts'
import type { SimulatedRoute } from './configuration.ts'
import { type Exchange, firstTagIn } from './exchange.ts'
import { refusalsOf } from './policies.ts'

type Say = (text: string) => void

const digestKey = Buffer.alloc(16, 7)
const nothingHidden: ReadonlySet<string> = new Set()

/** Keeps the blocks of all records in memory. */
export class DecisionStore {
  readonly #blocks: Buffer[] = []
  readonly #log: DecisionLog
  readonly #digests: FieldDigests

  constructor(core: IoCore) {
    const sink: BlockSink = {
      isBusy: false,
      idle: () => Promise.resolve(),
      append: (bytes, length, done) => {
        this.#blocks.push(Buffer.from(bytes.subarray(0, length)))
        done(true)
      },
    }
    const options = { proxy: 'edge', worker: 0, sink, digestKey: 'key', share: 1 }
    this.#log = new DecisionLog({ ...options, now: () => Date.now() })
    this.#digests = new FieldDigests(core, digestKey)
  }

  recorder(references: HeaderReferences): DecisionRecorder {
    return new DecisionRecorder({
      log: this.#log,
      headers: new ReceivedHeaders(this.#digests, references, nothingHidden),
      share: 1,
      hidden: nothingHidden,
      random: () => 0,
      idPrefix: 'simulated',
    })
  }

  /** Returns the records by the tags of their exchanges. */
  read(say: Say): ReadonlyMap<string, RecordedDecision> {
    this.#log.stop()
    const found = new Map<string, RecordedDecision>()
    for (const read of readBlocks(Buffer.concat(this.#blocks), 'memory')) {
      if ('problem' in read) {
        say(`a block cannot be read: ${read.problem.message}`)
        continue
      }
      const { method, path } = read.decision.request
      // Tunnels have no tag.
      if (method === 'CONNECT') continue
      // Requests of MCP clients have their tag at the end of the path.
      const tag = firstTagIn(path) ?? path.slice(path.lastIndexOf('/') + 1)
      if (found.has(tag)) say(`${tag} has two decision records`)
      found.set(tag, read.decision)
    }
    return found
  }
}

/** The steps that every request passes before it reaches an upstream of the route. */
function policiesOf(route: SimulatedRoute): string[] {
  const { authorizer, isProcessed, isGuarded, refusesWriters, keys, limit, isCounted } = route
  const has = {
    'traffic.apiKeyAuthentication': keys !== undefined,
    'traffic.extAuth': authorizer !== undefined,
    'traffic.authorization': isGuarded || refusesWriters,
    'traffic.rateLimit': limit !== undefined || isCounted,
    'traffic.extProc': isProcessed,
  }
  return Object.entries(has).flatMap(([step, isThere]) => (isThere ? [step] : []))
}

/** The record of a decision says what happened. */
export function checkDecision(
  exchange: Exchange,
  route: SimulatedRoute,
  { response, steps, attempts }: RecordedDecision,
  status: number,
  say: Say,
): void {
  if (response.status !== status)
    say(`is decided with ${response.status}, and logged with ${status}`)
  const { arrivals } = exchange
  // A request that breaks with a kept connection is sent once more, which is no attempt of its own.
  const isKept = arrivals.map((arrival) => arrival.isOnKeptConnection)
  const again = isKept.slice(0, -1).filter(Boolean).length
  if (attempts.length < arrivals.length - 1 - again) {
    say(`has ${attempts.length} failed attempts, of ${arrivals.length} arrivals`)
  }
  const missing = policiesOf(route).filter((step) => !steps.some((one) => one.step === step))
  if (arrivals.length > 0 && missing.length > 0) say(`reaches an upstream without ${missing}`)
  const verdicts = new Map(steps.map(({ step, verdict }) => [step, verdict]))
  for (const step of ['traffic.extAuth', 'traffic.authorization']) {
    const verdict = verdicts.get(step)
    if (arrivals.length > 0 && verdict === 'answer')
      say(`reaches an upstream after ${step} answered`)
  }
  const isRefused = refusalsOf(exchange, route) !== undefined
  const refusals = [...verdicts.values()].filter((verdict) => verdict === 'answer').length
  if (isRefused && refusals !== 1) say(`is refused, and its record has ${refusals} answers`)
}

/** What-if with the record of an exchange comes to the verdict of the exchange. */
export async function checkSimulated(
  simulator: Simulator,
  exchange: Exchange,
  decision: RecordedDecision,
  say: Say,
): Promise<void> {
  const { outcome, undecided, steps }: Simulation = await simulator.simulate(requestOf(decision))
  const isForwarded = exchange.arrivals.length > 0
  const reasons = [outcome.reason, ...undecided].join('; ')
  if (isForwarded && outcome.verdict !== 'forward') {
    say(`is forwarded, and simulated as ${outcome.verdict}: ${reasons}`)
  }
  const answered = decision.steps.find(({ verdict }) => verdict === 'answer')
  if (answered === undefined || isForwarded) return
  if (outcome.verdict === 'forward')
    say(`is answered by ${answered.step}, and simulated as forwarded`)
  const other = steps.find(({ verdict }) => verdict === 'answer')
  if (other !== undefined && other.step !== answered.step) {
    say(`is answered by ${answered.step}, and by ${other.step} in the simulation`)
  }
}

export const openSimulator = (
  resources: Parameters<typeof Simulator.open>[0],
): Promise<Simulator> => Simulator.open(resources, { digestKey })
