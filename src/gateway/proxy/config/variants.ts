/** Runs the first variant of a conditional policy whose condition is true. */
import { andThen } from '../../../ground/base/and-then.ts'
import { type Exchange, next, type Verdict } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import type { ConditionalConfig } from '../../policies/conditional.ts'
import type { Step } from '../../policies/define.ts'
import { bufferBodies, Expression } from '../../variables/index.ts'

interface Variant {
  readonly condition: Expression | undefined
  readonly step: Step
  readonly note: string
}

/** An expression that fails counts as false. */
const isTrue = (condition: Expression, exchange: Exchange): boolean =>
  condition.evaluate(exchange) === true

/** Numbers the policies, so that each keeps its choice under a name of its own. */
let policies = 0

/**
 * @param name name of the policy for notes, such as `traffic.extAuth`
 * @param bind makes the step of the variant at a position
 */
export function bindVariants(
  { conditional }: ConditionalConfig,
  name: string,
  bind: (config: unknown, at: number) => Step,
): Step {
  const variants: Variant[] = conditional.map(({ condition, config }, at) => ({
    condition: condition === undefined ? undefined : new Expression(condition),
    step: bind(config, at),
    note: `conditional[${at}] applies`,
  }))
  const needs = {
    request: variants.some(({ condition }) => condition?.request === true),
    response: false,
  }
  const extension = `conditional.${policies++}`
  const run = (_: unknown, exchange: Exchange): Verdict | Promise<Verdict> => {
    for (const { condition, step, note } of variants) {
      if (condition !== undefined && !isTrue(condition, exchange)) continue
      exchange.extensions.set(extension, step)
      addNote(exchange, name, note)
      return step.onRequest?.(exchange) ?? next
    }
    return next
  }
  const chosenFor = ({ extensions }: Exchange) => extensions.get(extension) as Step | undefined
  return {
    onRequest: (exchange) => andThen(bufferBodies(exchange, needs), run, exchange),
    onResponse: (exchange) => chosenFor(exchange)?.onResponse?.(exchange),
    dispose: () => {
      for (const { step } of variants) step.dispose?.()
    },
  }
}
