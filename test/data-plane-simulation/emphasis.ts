/**
 * How often the worlds of a seed have each feature. A world with a few features many times finds defects that a
 * world with every feature a few times hides, since features prevent each other: a request that one policy refuses
 * tests nothing behind that policy.
 */
import { Random } from '../virtual-time/random.ts'

/** Factors of the usual probability, which are 1 on average. */
const factors = [0, 0.5, 1, 2.5]
/** Even a feature that a world emphasizes is sometimes missing, for comparison. */
const most = 0.9

/** Share of worlds with one route and few clients, of which many more run in the same time. */
const shortShare = 0.6

export class Emphasis {
  readonly isShort: boolean
  /** Chooses scopes of guards, so that they do not change what else the world has. */
  readonly scopes: Random
  readonly #random: Random
  readonly #factors = new Map<string, number>()

  constructor(seed: number) {
    this.#random = new Random(seed, 'emphasis')
    this.scopes = new Random(seed, 'scopes')
    this.isShort = new Random(seed, 'size').chance(shortShare)
  }

  /** Returns the probability of a feature in this world, from the probability in all worlds. */
  of(feature: string, usual: number): number {
    const factor = this.#factors.get(feature) ?? this.#random.pick(factors)
    this.#factors.set(feature, factor)
    return Math.min(most, usual * factor)
  }
}
