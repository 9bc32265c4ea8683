import { type Infer, map, object, required, text } from '../../../ground/schema/field.ts'
import { celExpression } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

// Expressions write `identity.team`, so that names are those of fields.
const dimensionName = text({
  name: 'IdentityDimension',
  min: 1,
  max: 32,
  pattern: '^[A-Za-z][A-Za-z0-9_]*$',
  expects: 'a name of letters, digits and underscores',
})

const identitySchema = object('Identity', {
  dimensions: required(
    map(celExpression, { keys: dimensionName, max: 8 }),
    'Expressions by the name of the dimension, such as `team: apiKey.team` and `user: identity.principal`. A request has no value in a dimension whose expression gives no string, number or bool.',
  ),
})

const compile = ({ dimensions }: Infer<typeof identitySchema>) => ({
  config: {
    dimensions: Object.entries(dimensions).map(([name, expression]) => ({ name, expression })),
  },
  problems: [],
})

/** Says who a request belongs to. */
export const identity = definePolicy({
  section: 'traffic',
  field: 'identity',
  schema: identitySchema,
  doc: 'Who a request belongs to, in records, the access log, metrics and `sluice spend`, and as `identity` in later expressions. Without it, a request has one dimension, `principal`: the id of its API key, or else the issuer and the subject of its token, its user name, or its client certificate.',
  security: false,
  expressions: [{ path: '', point: 'traffic' }],
  compile,
  apply: () => import('./apply.ts'),
})
