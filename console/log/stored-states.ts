/** The states that a log has stored along its length. Folding begins at the nearest one. */
import type { SnapshotPart } from '../../src/control/log/export-lines.ts'
import { type FoldSnapshot, foldVersion } from '../../src/past/replay/index.ts'
import { chunksOf } from './lines.ts'

export interface StoredState {
  readonly position: number
  readonly foldVersion: string
  /** Rejects if the state is damaged or gone. */
  load(): Promise<FoldSnapshot>
}

/** Maximum bytes of a state after decompression. */
const maxBytes = 512 * 1024 ** 2

export class StoredStates {
  /** In the order of their positions. */
  #states: StoredState[] = []
  #parts: { readonly state: StoredState; readonly parts: SnapshotPart[] } | undefined

  /** States of other versions of the fold, which are used only where earlier events are gone. */
  get others(): readonly StoredState[] {
    return this.#states.filter((state) => state.foldVersion !== foldVersion)
  }

  /** Adds a state after those at earlier positions. */
  add(state: StoredState): void {
    this.#states.push(state)
  }

  /** Adds one line of a state in an export. */
  addPart(part: SnapshotPart): void {
    const { position, foldVersion: writer } = part
    const open = this.#parts
    if (part.part > 1 && open?.state.position === position) {
      open.parts.push(part)
      return
    }
    const parts = [part]
    const state = { position, foldVersion: writer, load: () => unpack(parts) }
    this.#parts = { state, parts }
    this.add(state)
  }

  /** The newest state of this fold version at or before a position. */
  nearest(position: number): StoredState | undefined {
    return this.#states.findLast(
      (state) => state.position <= position && state.foldVersion === foldVersion,
    )
  }

  /** The first state that replaces the events before a position; one of this fold version if there is one. */
  covering(first: number): StoredState | undefined {
    const covering = this.#states.filter(({ position }) => position >= first - 1)
    return covering.find((state) => state.foldVersion === foldVersion) ?? covering[0]
  }

  /** Removes a state that cannot be used. */
  remove(state: StoredState): void {
    this.#states = this.#states.filter((other) => other !== state)
  }
}

async function unpack(parts: readonly SnapshotPart[]): Promise<FoldSnapshot> {
  if (parts.length !== parts[0]?.parts || parts.some(({ part }, at) => part !== at + 1)) {
    throw new TypeError('a stored state of the log is incomplete')
  }
  const text = atob(parts.map(({ gzip }) => gzip).join(''))
  const packed = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) packed[at] = text.charCodeAt(at)
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))
  const decoder = new TextDecoder()
  let bytes = 0
  let json = ''
  for await (const chunk of chunksOf(stream)) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RangeError('the state is too large')
    json += decoder.decode(chunk, { stream: true })
  }
  return (JSON.parse(json) as { readonly fold: FoldSnapshot }).fold
}
