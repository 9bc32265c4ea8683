import type { Infer } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { retryRule } from '../../schema/shapes/retry.ts'

const retry = retryRule
export type RetrySpec = Infer<typeof retry>

export const retryField = sectionField({
  section: 'traffic',
  field: 'retry',
  schema: retry,
  doc: 'Sends failed requests again (HTTPRoute retry).',
})
