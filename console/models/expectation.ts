/** When a condition began or ceased to have its value: the answer of `sluice bisect`. */

import { type ObjectKey, parseObjectKey } from '../../src/ground/model/names.ts'
import { causeText } from '../../src/past/explain/event-text.ts'
import { findFlips } from '../../src/past/explain/expectation.ts'
import type { Moment } from '../log/loaded-log.ts'

interface ExpectationParams {
  readonly object: ObjectKey
  readonly type: string
  /** The expected status or reason. */
  readonly value: string
}

export async function expectationModel(moment: Moment, params: ExpectationParams) {
  const { object, type, value } = params
  const { events } = moment.log
  const ref = parseObjectKey(object)
  const expectation = { object: ref, type, value }
  const history = (await moment.histories([object])).get(object)
  const { heldInitially, flips } = findFlips(history ?? { initial: [], steps: [] }, expectation)
  await events.load(flips.flatMap(({ cause }) => cause.index ?? []))
  return {
    holds: flips.at(-1)?.holds ?? heldInitially,
    flips: flips.map(({ holds, cause }) => {
      if (cause.index === undefined) return { holds, cause: undefined }
      const { position, event } = events.read(cause.index)
      return { holds, cause: { position, time: event.time, text: causeText(event) } }
    }),
    /** Position of the first event from which on nothing is missing; 0 if the history is whole. */
    knownFrom: events.positions[moment.knownFrom - 1] ?? 0,
  }
}
