/** Builds conditions. Types and reasons are those of Gateway API 1.6 unless noted. */
import type { DecidedCondition } from '../../ground/model/conditions.ts'

function condition(
  status: DecidedCondition['status'],
  type: string,
  reason: string,
  observedGeneration: number,
  text: string,
): DecidedCondition {
  // metav1.Condition allows 32768 characters; longer lists are cut well below that limit.
  const message = text.length <= 8192 ? text : `${text.slice(0, 8189)}...`
  return { type, status, reason, message, observedGeneration }
}

export function conditionTrue(
  type: string,
  reason: string,
  generation: number,
  message = '',
): DecidedCondition {
  return condition('True', type, reason, generation, message)
}

export function conditionFalse(
  type: string,
  reason: string,
  generation: number,
  message: string,
  own?: readonly string[],
): DecidedCondition {
  return { ...condition('False', type, reason, generation, message), ...(own && { own }) }
}

/** A condition whose status is not known yet. */
export function conditionUnknown(
  type: string,
  { reason, message }: Failure,
  generation: number,
): DecidedCondition {
  return condition('Unknown', type, reason, generation, message)
}

/** The reason and message of a condition that is False. */
export interface Failure {
  readonly reason: string
  readonly message: string
  /** See `DecidedCondition.own`. */
  readonly own?: readonly string[]
}

/** Marks a failure that is not a mistake in the object: another object or the cluster resolves it. */
export const notOwn = { own: [] } as const

/** The parts of a message that report mistakes in the object itself. */
export function ownMessages({ message, own = [message] }: Pick<Failure, 'message' | 'own'>) {
  return own
}

/** Collects the own messages of several failures without duplicates. */
export function joinOwn(failures: readonly Pick<Failure, 'message' | 'own'>[]): {
  readonly own: readonly string[]
} {
  return { own: [...new Set(failures.flatMap(ownMessages))] }
}

/** The first failure, with the own messages of all failures. */
function firstFailure(failures: readonly Failure[]): Failure | undefined {
  const [first] = failures
  return first && { ...first, ...joinOwn(failures) }
}

/** The references that can be resolved, and the first failure with the own messages of all. */
export function resolveAll<Reference, Found extends object>(
  references: readonly Reference[],
  resolve: (reference: Reference) => Found | Failure,
): { readonly found: readonly Found[]; readonly failure: Failure | undefined } {
  const found: Found[] = []
  const failures: Failure[] = []
  for (const reference of references) {
    const resolved = resolve(reference)
    if ('reason' in resolved) failures.push(resolved)
    else found.push(resolved)
  }
  return { found, failure: firstFailure(failures) }
}

/** One failure with the reason of the first and the messages of all. */
export function joinFailures(failures: readonly Failure[]): Failure | undefined {
  if (failures.length === 0) return undefined
  const first = firstFailure(failures)
  return first && { ...first, message: failures.map(({ message }) => message).join('; ') }
}

/** The condition `type`: False with the failure, or True with `reasonWhenTrue` if there is none. */
export function conditionOf(
  type: string,
  failure: Failure | undefined,
  reasonWhenTrue: string,
  generation: number,
  message = '',
): DecidedCondition {
  return failure === undefined
    ? conditionTrue(type, reasonWhenTrue, generation, message)
    : conditionFalse(type, failure.reason, generation, failure.message, failure.own)
}
