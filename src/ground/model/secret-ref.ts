import type { ObjectName } from './names.ts'

/** Refers to one entry of a Secret by name and by the keyed digest of its value; never has the value. */
export interface SecretRef extends ObjectName {
  /** Entry in the Secret's data, such as `tls.key`. */
  readonly key: string
  readonly digest: string
}
