import { Bytes, newBytes, newRecord } from './bytes'

/** What the last masker gives out: text, then the ends of parts (lengths of the text at which they lie). */
@unmanaged
export class Masked {
  text: Bytes
  ends: Bytes
}

export function newMasked(): Masked {
  const masked = changetype<Masked>(newRecord(offsetof<Masked>()))
  masked.text = newBytes()
  masked.ends = newBytes()
  return masked
}
