/** The disjoint counters of a usage report. Each token is in exactly one of them. */
import type { Usage } from '../chat.ts'
import type { Rates } from './rates.ts'

/** The counters, by the names of their prices in catalogs. */
export const counterNames = [
  'input',
  'cacheRead',
  'cacheReadAudio',
  'cacheWrite',
  'cacheWrite1h',
  'inputAudio',
  'inputImage',
  'output',
  'reasoning',
  'outputAudio',
  'outputImage',
] as const satisfies readonly (keyof Rates)[]
export type CounterName = (typeof counterNames)[number]

/** Position of each counter in `countersOf`. */
export const at = Object.fromEntries(counterNames.map((name, index) => [name, index])) as {
  readonly [Name in CounterName]: number
}

/** The counters of the last usage. They are read at once, so that no request needs a list of its own. */
const counters: number[] = counterNames.map(() => 0)

/**
 * Returns the counters of a usage report, in the order of `counterNames`, in a list that the next call reuses. Parts
 * that exceed their whole are cut, so that the sum is the number of tokens that the provider billed.
 */
export function countersOf(usage: Usage): readonly number[] {
  const { uncachedInput, output, cacheRead = 0, cacheWrite = 0, kinds } = usage
  const cachedAudio = Math.min(usage.cacheReadAudio ?? 0, cacheRead)
  const longWrite = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const audio = Math.min(Math.max(0, (kinds?.inputAudioTokens ?? 0) - cachedAudio), uncachedInput)
  const image = Math.min(kinds?.inputImageTokens ?? 0, uncachedInput - audio)
  const reasoning = Math.min(usage.reasoning ?? 0, output)
  const audioOut = Math.min(kinds?.outputAudioTokens ?? 0, output - reasoning)
  const imageOut = Math.min(kinds?.outputImageTokens ?? 0, output - reasoning - audioOut)
  counters[at.input] = uncachedInput - audio - image
  counters[at.cacheRead] = cacheRead - cachedAudio
  counters[at.cacheReadAudio] = cachedAudio
  counters[at.cacheWrite] = cacheWrite - longWrite
  counters[at.cacheWrite1h] = longWrite
  counters[at.inputAudio] = audio
  counters[at.inputImage] = image
  counters[at.output] = output - reasoning - audioOut - imageOut
  counters[at.reasoning] = reasoning
  counters[at.outputAudio] = audioOut
  counters[at.outputImage] = imageOut
  return counters
}
