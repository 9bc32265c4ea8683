/** Compares what would happen to a request under the present state and under the candidate. */
import type { SimulatedOutcome, Simulation } from '../simulate/index.ts'
import { Causes } from './causes.ts'
import type { ChangedDestinations } from './destinations.ts'
import type { ChangeKind, RequestChange } from './groups.ts'
import type { Places } from './places.ts'
import type { ComparedStates } from './states.ts'

/** `deny`: the gateway answers with an error. `answer`: it answers otherwise, such as by a redirect. */
type Effect = 'allow' | 'answer' | 'deny'

export type RequestDifference =
  | { readonly change: RequestChange }
  | { readonly undecided: string }
  | undefined

const sameDestination = { change: 'none' } as const

export class RequestComparison {
  readonly #causes: Causes
  readonly #places: Places
  readonly #destinations: ChangedDestinations

  constructor(states: ComparedStates, places: Places, destinations: ChangedDestinations) {
    this.#causes = new Causes(states)
    this.#places = places
    this.#destinations = destinations
  }

  compare(a: Simulation, b: Simulation): RequestDifference {
    const reason = this.#undecided(a, b)
    if (reason !== undefined) return reason === '' ? undefined : { undecided: reason }
    const [from, to] = [a.outcome, b.outcome]
    if (from.verdict === 'undecided' || to.verdict === 'undecided') return undefined
    // Only what was not judged depends on bodies that are not recorded.
    const isJudged = from.otherSettings !== undefined && from.otherSettings === to.otherSettings
    const destination = isJudged ? sameDestination : this.#destinations.compare(from, to)
    if (destination.change === 'unknown') return { undecided: `backend: ${destination.reason}` }
    const isRerouted = !this.#places.isSameRule(from, to)
    const isOtherProvider = destination.change === 'provider' && from.verdict === 'forward'
    const kinds = [
      ...(isRerouted ? ['route' as const] : []),
      ...this.#kindsOf(a, b),
      ...(isOtherProvider ? ['provider' as const] : []),
    ]
    if (kinds.length === 0) return undefined
    const isOfPlace = isRerouted || kinds.every((kind) => kind === 'backend' || kind === 'provider')
    const cause = isOfPlace ? this.#causes.ofPlace(a, b) : this.#causes.ofVerdict(a, b)
    const providers = isOtherProvider ? destination : undefined
    const fromText = textOf(from, kinds, providers?.from)
    const toText = textOf(to, kinds, providers?.to)
    const content = fromText === toText ? ' with other content' : ''
    return { change: { kinds, cause, from: fromText, to: `${toText}${content}` } }
  }

  /** Returns why the difference is unknown; an empty string if both sides are undecided for the same reason. */
  #undecided(a: Simulation, b: Simulation): string | undefined {
    const isOpen = ({ outcome }: Simulation) => outcome.verdict === 'undecided'
    if (!isOpen(a) && !isOpen(b)) return undefined
    const [from, to] = [a.outcome, b.outcome]
    const isSame = this.#places.isSameRule(from, to) && from.reason === to.reason
    if (isSame && from.route !== undefined && !this.#places.isTouched(from)) return ''
    return (isOpen(b) ? to.reason : from.reason) ?? 'unknown'
  }

  /** Moves a request whose recorded backend is kept to another one, if the weights of its rule change so. */
  applyWeights(a: Simulation, b: Simulation): Simulation {
    const [from, to] = [a.outcome, b.outcome]
    const isKept = from.backend !== undefined && from.backend === to.backend
    if (!isKept || from.verdict !== 'forward' || to.verdict !== 'forward') return b
    if (!this.#places.isSameRule(from, to)) return b
    const moved = this.#places.movedBackend(a.request.id ?? '', from, to)
    return moved === undefined ? b : { ...b, outcome: { ...to, backend: `${moved} by weight` } }
  }

  #kindsOf(a: Simulation, b: Simulation): ChangeKind[] {
    const [from, to] = [a.outcome, b.outcome]
    const [before, after] = [effectOf(from), effectOf(to)]
    const kinds: ChangeKind[] = []
    if (before === 'deny' && after !== 'deny') kinds.push('deny-to-allow')
    if (before !== 'deny' && after === 'deny') kinds.push('allow-to-deny')
    if (before !== after) kinds.push('verdict')
    if (isOther(from.status, to.status)) kinds.push('status')
    if (isOther(from.backend, to.backend) || isReplaced(a, b)) kinds.push('backend')
    if (kinds.length === 0 && before === 'answer' && this.#isOtherAnswer(a, b))
      kinds.push('verdict')
    if (kinds.length === 0) return kinds
    const answers = [a, b].flatMap(({ steps }) =>
      steps.filter(({ verdict }) => verdict === 'answer'),
    )
    if (answers.some(({ step }) => /rateLimit$/.test(step))) kinds.push('limit')
    if ([from, to].some(isGuarded)) kinds.push('guard')
    return kinds
  }

  /** Whether the same status is sent by another step or filter, so that the response may differ. */
  #isOtherAnswer(a: Simulation, b: Simulation): boolean {
    const [from, to] = [a.steps.at(-1), b.steps.at(-1)]
    if (from?.verdict === 'answer' || to?.verdict === 'answer') {
      return from?.step !== to?.step || from?.config !== to?.config
    }
    return !this.#places.hasSameFilters(a.outcome, b.outcome)
  }
}

const isGuarded = ({ verdict, reason = '' }: SimulatedOutcome): boolean =>
  verdict === 'answer' && /guard/i.test(reason)

const isOther = (a: string | number | undefined, b: string | number | undefined): boolean =>
  a !== undefined && b !== undefined && a !== b

/** Whether the recorded backend is no longer in the rule, so that another one is chosen by weight. */
const isReplaced = ({ outcome: from }: Simulation, { outcome: to }: Simulation): boolean =>
  from.verdict === 'forward' &&
  to.verdict === 'forward' &&
  from.backend !== undefined &&
  to.backend === undefined

function effectOf({ verdict, status = 0, isRefusal }: SimulatedOutcome): Effect {
  if (verdict === 'forward') return 'allow'
  return status >= 400 || isRefusal === true ? 'deny' : 'answer'
}

function textOf(
  outcome: SimulatedOutcome,
  kinds: readonly ChangeKind[],
  provider = outcome.provider,
): string {
  const effect = effectOf(outcome)
  const { status, route, rule, backend } = outcome
  const place = route === undefined ? 'by no route' : `by ${route} rule ${rule}`
  const isForwarded = effect === 'allow'
  return [
    isForwarded || status === undefined ? effect : `${effect} ${status}`,
    ...(kinds.includes('route') ? [place] : []),
    ...(isForwarded && kinds.includes('backend') ? [`to ${backend ?? 'a backend by weight'}`] : []),
    ...(isForwarded && kinds.includes('provider') ? [`by ${provider ?? 'unknown provider'}`] : []),
  ].join(' ')
}
