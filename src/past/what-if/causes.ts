/** Finds the changed object that explains why a request has another outcome. */
import { type ObjectRef, objectKey, objectText, parseObjectKey } from '../../ground/model/names.ts'
import type { SimulatedStep, Simulation } from '../simulate/index.ts'
import { specChanges } from './spec-changes.ts'
import type { ComparedStates, ObjectChange } from './states.ts'

const maxNamed = 3

export class Causes {
  readonly #states: ComparedStates
  /** Changed objects, by texts such as `GatewayPolicy shop/users`. */
  readonly #changes = new Map<string, { readonly ref: ObjectRef; readonly change: ObjectChange }>()
  readonly #phrases = new Map<string, string>()

  constructor(states: ComparedStates) {
    this.#states = states
    for (const [key, change] of states.changes) {
      const ref = parseObjectKey(key)
      this.#changes.set(objectText(ref), { ref, change })
    }
  }

  /** Returns why the same rule has another verdict. */
  ofVerdict(a: Simulation, b: Simulation): string {
    const [answerA, answerB] = [answeringStep(a), answeringStep(b)]
    for (const step of [answerB, answerA]) {
      const other = step === answerA ? b : a
      if (step === undefined || hasStep(other, step)) continue
      return this.#ofStep(
        step,
        other.steps.find(({ step: name }) => name === step.step),
      )
    }
    for (const { step, other } of differentSteps(a, b)) return this.#ofStep(step, other)
    return this.ofPlace(a, b)
  }

  /** Returns why another route, rule or backend was chosen. */
  ofPlace(a: Simulation, b: Simulation): string {
    const places = [a.outcome, b.outcome]
    const named = (kinds: RegExp, names: readonly (string | undefined)[]) =>
      [...this.#changes].flatMap(([text, { ref }]) =>
        kinds.test(ref.kind) && names.includes(`${ref.namespace}/${ref.name}`)
          ? [this.#phrase(text)]
          : [],
      )
    const found = [
      named(
        /Route$/,
        places.map(({ route }) => route?.replace(/^\w+ /, '')),
      ),
      named(
        /^GatewayBackend$/,
        places.map(({ backend }) => backend),
      ),
      named(
        /^Gateway$/,
        places.map(({ gateway }) => gateway),
      ),
    ].find((phrases) => phrases.length > 0)
    return found === undefined ? this.#ofAnything() : joined(found)
  }

  /** Names the changed objects behind a step that is new, gone or has another configuration. */
  #ofStep(step: SimulatedStep, other: SimulatedStep | undefined): string {
    const objects = [...new Set([...step.from, ...(other?.from ?? [])].map(({ object }) => object))]
    const field = `spec.${step.step}`
    const found = objects.flatMap((text) =>
      this.#changes.has(text) ? [this.#phrase(text, field)] : [],
    )
    if (found.length > 0) return joined(found)
    return `${step.step} of ${joined(objects)} is affected by other changes: ${this.#ofAnything()}`
  }

  #ofAnything(): string {
    const texts = [...this.#changes.keys()]
    const rest = texts.length - maxNamed
    const phrases = texts.slice(0, maxNamed).map((text) => this.#phrase(text))
    return joined([...phrases, ...(rest > 0 ? [`${rest} more objects changed`] : [])])
  }

  /** `field` is the part of the object that matters, if it is known. */
  #phrase(text: string, field = 'spec'): string {
    const key = `${text} ${field}`
    const known = this.#phrases.get(key)
    if (known !== undefined) return known
    const { ref, change } = this.#changes.get(text) ?? { change: 'changed' }
    const phrase =
      change === 'changed'
        ? `${text} changed${this.#fieldsOf(ref, field)}`
        : `${text} was ${change}`
    this.#phrases.set(key, phrase)
    return phrase
  }

  #fieldsOf(ref: ObjectRef | undefined, field: string): string {
    if (ref === undefined) return ''
    const { present, fold } = this.#states
    const [before, after] = [present, fold].map((state) => state.graph.object(objectKey(ref)))
    if (after?.refused !== undefined) return ' (it is invalid)'
    const ofField = specChanges(
      field,
      valueAt(before?.object, field),
      valueAt(after?.object, field),
    )
    const ofSpec = specChanges('spec', before?.object?.spec, after?.object?.spec)
    const changes = ofField.length > 0 ? ofField : ofSpec
    return changes.length === 0 ? '' : ` (${changes.join(', ')})`
  }
}

function valueAt(object: object | undefined, path: string): unknown {
  let value: unknown = object
  for (const field of path.split('.'))
    value = (value as Record<string, unknown> | undefined)?.[field]
  return value
}

const joined = (texts: readonly string[]): string => texts.join(' and ')

const answeringStep = ({ steps }: Simulation): SimulatedStep | undefined => {
  const last = steps.at(-1)
  return last?.verdict === 'answer' ? last : undefined
}

const hasStep = ({ steps }: Simulation, { step, config }: SimulatedStep): boolean =>
  steps.some((one) => one.step === step && one.config === config)

/** Returns steps whose configuration exists on one side only, with the other side's step of the same name. */
function differentSteps(a: Simulation, b: Simulation) {
  const from = (one: Simulation, other: Simulation) =>
    one.steps.flatMap((step) =>
      hasStep(other, step)
        ? []
        : [{ step, other: other.steps.find(({ step: name }) => name === step.step) }],
    )
  return [...from(a, b), ...from(b, a)]
}
