/** When a condition began or ceased to have its value: the answer of `sluice bisect`. */
import { causeText } from '../../src/explain/event-text.ts'
import { findFlips } from '../../src/explain/expectation.ts'
import { type ObjectKey, parseObjectKey } from '../../src/model/names.ts'
import type { Moment } from '../log/loaded-log.ts'

interface ExpectationParams {
  readonly object: ObjectKey
  readonly type: string
  /** The expected status or reason. */
  readonly value: string
}

export function expectationModel({ log }: Moment, { object, type, value }: ExpectationParams) {
  const ref = parseObjectKey(object)
  const expectation = { object: ref, type, value }
  const { heldInitially, flips } = findFlips(log.conditionsOf(object), expectation)
  return {
    holds: flips.at(-1)?.holds ?? heldInitially,
    flips: flips.map(({ holds, cause }) => {
      const { position, event } = log.events.read(cause)
      return { holds, position, time: event.time, cause: causeText(event) }
    }),
  }
}
