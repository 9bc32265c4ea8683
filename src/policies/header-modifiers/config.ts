import type { HeaderChanges } from '../../model/resources.ts'

/** Version 1. A half that the user left out changes nothing. */
export interface HeaderModifiersConfig {
  readonly request?: HeaderChanges
  readonly response?: HeaderChanges
}
