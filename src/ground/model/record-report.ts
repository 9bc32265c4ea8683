/** The message by which a proxy passes decision records on to its controller. */

export interface RecordReport {
  /** A block of records (`proto/decisions.proto`). */
  readonly block: Uint8Array
  /** Whether the block was sent before, maybe to another replica. */
  readonly isRepeated: boolean
}
