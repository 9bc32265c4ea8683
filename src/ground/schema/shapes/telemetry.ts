import { choice, list, object, optional, required, text } from '../field.ts'
import { atLeastOneOf } from '../rules.ts'
import { celExpression, shortString, tinyString } from '../strings.ts'

const attributeAdd = object('AttributeAdd', {
  name: required(shortString, 'Name of the attribute.'),
  expression: required(
    celExpression,
    'Value of the attribute. If evaluation fails, the attribute is omitted.',
  ),
})

/** How a collector is called. */
export const exportProtocol = choice('TracingProtocol', {
  HTTP: 'OTLP over HTTP',
  GRPC: 'OTLP over gRPC',
})

/** Path at which a collector receives data over HTTP. */
export const exportPath = text({
  name: 'ExportPath',
  min: 1,
  max: 1024,
  pattern: '^/[!-~]*$',
  expects: 'a path such as /otlp/v1/logs',
})

/** Changes to the attributes of log lines and spans. If `add` repeats a name, the last entry counts. */
export const logTracingAttributes = object(
  'LogTracingAttributes',
  {
    remove: optional(
      list(tinyString, { min: 1, max: 32 }),
      'Default attributes that are dropped, such as http.method.',
    ),
    add: optional(list(attributeAdd, { min: 1, max: 256 }), 'Attributes that are added.'),
  },
  { rules: [atLeastOneOf('remove', 'add')] },
)
