/** Checks that a pin keeps everything in force that was in force when it was set, until an event replaces or lifts it. */
import type { Recorded } from '../../src/control/log/index.ts'
import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import type { Fold } from '../../src/past/replay/index.ts'
import { isKeptKind } from './kept-versions.ts'

type Specs = ReadonlyMap<ObjectKey, string | undefined>

/** The specs in force of all kinds that a pin holds. */
function specsOf({ graph }: Fold): Specs {
  const kept = [...graph.objects()].filter(
    ({ ref, object }) => isKeptKind(ref.kind) && object !== undefined,
  )
  return new Map(kept.map(({ ref, object }) => [objectKey(ref), JSON.stringify(object?.spec)]))
}

export class PinnedState {
  #specs: Specs | undefined

  /**
   * Called after an event was folded. `target` is the state to which the event rolls back. `isPinned` says whether a pin is
   * set, by rules that are independent of the fold. Returns what is wrong; undefined if nothing is.
   */
  problemWith(
    fold: Fold,
    { event }: Recorded,
    isPinned: boolean,
    target: Fold | undefined,
  ): string | undefined {
    if (!isPinned) {
      this.#specs = undefined
      return undefined
    }
    const isSet = event.type === 'dev.sluice.pin.set.v1'
    const wanted = isSet ? target && specsOf(target) : this.#specs
    const specs = specsOf(fold)
    if (isSet || this.#specs === undefined) this.#specs = specs
    if (wanted === undefined) return undefined
    const wasRefused = (key: ObjectKey) => isSet && target?.graph.object(key)?.refused !== undefined
    const wrong = [...new Set([...wanted.keys(), ...specs.keys()])].filter(
      (key) => !wasRefused(key) && wanted.get(key) !== specs.get(key),
    )
    return wrong.length === 0 ? undefined : `the pin does not keep ${wrong.join(', ')}`
  }
}
