/** `sluice bisect`: the event after which an expectation about a condition no longer held. */
import type { Recorded } from '../log/index.ts'
import type { ObjectRef } from '../model/names.ts'
import {
  type ConditionsNow,
  conditionsAtFirst,
  followConditions,
  placeAndType,
} from './condition-history.ts'
import { causeText, hintOf } from './explain-condition.ts'
import { type OfflineOptions, type Recording, readRecording, tellRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, UsageError } from './output.ts'
import { objectText, parseObjectPath } from './status.ts'

interface Expectation {
  readonly object: ObjectRef
  readonly type: string
  /** Status, such as `True`, or a reason, such as `Accepted`. */
  readonly value: string
}

/**
 * `KIND/[NAMESPACE/]NAME TYPE=VALUE`, where the value is a status or a reason.
 * @throws UsageError
 */
function parseExpectation(text: string): Expectation {
  const [, path, type, value] = /^(\S+)\s+([A-Za-z]+)=(\w+)$/.exec(text.trim()) ?? []
  if (path === undefined || type === undefined || value === undefined) {
    throw new UsageError(`--expect '${text}' is not 'KIND/NAME CONDITION=VALUE'`)
  }
  return { object: parseObjectPath(path), type, value }
}

/** It holds where at least one place has the condition, and all that have it agree. */
function holds({ type, value }: Expectation, now: ConditionsNow): boolean {
  const states = [...now].flatMap(([key, state]) => (placeAndType(key)[1] === type ? [state] : []))
  const agrees = states.every(({ status, reason }) => status === value || reason === value)
  return states.length > 0 && agrees
}

interface Turn {
  readonly holds: boolean
  readonly cause: Recorded
}

interface Turns {
  /** In the state that the events begin with. */
  readonly atFirst: boolean
  readonly turns: readonly Turn[]
}

function turnsOf(recording: Recording, expectation: Expectation): Turns {
  const turns: Turn[] = []
  const atFirst = holds(expectation, conditionsAtFirst(recording, expectation.object))
  const note: Parameters<typeof followConditions>[2] = (now, [change]) => {
    const isFine = holds(expectation, now)
    if (change !== undefined && isFine !== (turns.at(-1)?.holds ?? atFirst)) {
      turns.push({ holds: isFine, cause: change.cause })
    }
  }
  followConditions(recording, expectation.object, note)
  return { atFirst, turns }
}

function turnText({ holds: isFine, cause: { position, event } }: Turn): string {
  const what = isFine ? 'holds since' : 'broken by'
  return `${what} event ${position}, ${event.time}: ${causeText(event)}`
}

/** Exit code 0: it holds at the end; 1: it does not, or it never did. */
export async function bisect(
  expect: string,
  options: OfflineOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const expectation = parseExpectation(expect)
  const recording = await readRecording(options)
  tellRecording(recording, output)
  const { atFirst, turns } = turnsOf(recording, expectation)
  const last = turns.at(-1)
  const isHeld = last?.holds ?? atFirst
  if (format === 'json') {
    const described = turns.map(({ holds: isFine, cause: { position, event } }) => ({
      holds: isFine,
      position,
      time: event.time,
      cause: causeText(event),
    }))
    const answer = { expectation, holds: isHeld, turns: described }
    output.print(JSON.stringify(answer, undefined, 2))
  } else if (last === undefined) {
    const { object, type, value } = expectation
    const had = atFirst ? 'had' : 'never had'
    const { length } = recording.events
    const hint = isHeld ? '' : hintOf(object, recording.events)
    output.print(`${objectText(object)} ${had} ${type}=${value} in all of ${length} events${hint}`)
  } else {
    for (const turn of turns) output.print(turnText(turn))
  }
  return isHeld ? exitCode.fine : exitCode.no
}
