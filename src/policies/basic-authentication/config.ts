import { choice, list, record, type Shape, text } from '../../base/shape.ts'
/** Version 1. */
export interface BasicAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional'
  readonly realm: string
  /**
   * Digests of texts in htpasswd format: single lines, or a whole file. Where there is none, no
   * credentials are valid.
   */
  readonly files: readonly string[]
}

export const shape: Shape<BasicAuthenticationConfig> = record({
  mode: choice('Strict', 'Optional'),
  realm: text,
  files: list(text),
})
