import type { Infer } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { corsFilter } from '../../schema/shapes/cors.ts'

const cors = corsFilter
export type CorsSpec = Infer<typeof cors>

export const corsField = sectionField({
  section: 'traffic',
  field: 'cors',
  schema: cors,
  doc: 'Answers preflight requests and adds the CORS response headers (HTTPRoute CORS filter).',
})
