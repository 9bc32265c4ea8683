import type { Random } from './random.ts'

/** What a target has running while its inputs are tried. */
export interface FuzzRun {
  /** Throws, or rejects, if a property does not hold for this input. */
  check(input: Buffer): void | Promise<void>
  close?(): void | Promise<void>
}

/** One file of test/fuzz/targets default-exports one of these. README.md says how to write one. */
export interface FuzzTarget {
  /** What holds for every input, in one sentence. */
  readonly about: string
  /** Inputs that mean something; they are mutated, and never empty if `generate` is omitted. */
  readonly samples?: readonly (string | Uint8Array)[]
  /** Words of the format; they are put into samples. */
  readonly words?: readonly (string | Uint8Array)[]
  /** Makes an input. Default: a sample with some mutations. */
  readonly generate?: (random: Random) => string | Uint8Array
  start(): FuzzRun | Promise<FuzzRun>
}

export const defineTarget = (target: FuzzTarget): FuzzTarget => target
