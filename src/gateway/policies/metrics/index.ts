import { list, object, optional, required, text } from '../../../ground/schema/field.ts'
import { celExpression } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const labelName = text({
  name: 'MetricLabelName',
  min: 1,
  max: 128,
  pattern: '^([a-zA-Z]|_[a-zA-Z0-9])[a-zA-Z0-9_]*$',
  expects: 'a name such as team_name',
})

const labelAdd = object('MetricLabelAdd', {
  name: required(labelName, 'Name of the label.'),
  expression: required(celExpression, 'Value of the label; `unknown` if evaluation fails.'),
})

const metricsSchema = object('FrontendMetrics', {
  attributes: optional(
    object('MetricAttributes', {
      add: optional(list(labelAdd, { min: 1, max: 16 }), 'Labels that are added.'),
    }),
    'Changes to the labels of the metrics of requests.',
  ),
})

/** Labels that metrics of requests have without a policy, and that of buckets. A test compares them with the metrics. */
export const reservedLabels: ReadonlySet<string> = new Set(
  [
    'backend binding error_type gen_ai_operation_name gen_ai_provider_name gen_ai_request_model',
    'gen_ai_response_model gen_ai_system gen_ai_token_type method protocol reason result state status target type',
    'bind gateway listener route route_rule le',
  ].flatMap((line) => line.split(' ')),
)

/** Adds labels to the metrics of requests. */
export const metrics = definePolicy({
  section: 'frontend',
  field: 'metrics',
  schema: metricsSchema,
  doc: 'Labels of the metrics of requests.',
  security: false,
  expressions: [{ path: '', point: 'observation' }],
  compile({ attributes }) {
    const problems: PolicyProblem[] = []
    const labels = new Map<string, string>()
    for (const [at, { name, expression }] of (attributes?.add ?? []).entries()) {
      const path = `attributes.add[${at}].name`
      if (reservedLabels.has(name))
        problems.push({
          path,
          message: `every request already has a label ${name}; choose another name`,
        })
      else if (labels.has(name))
        problems.push({ path, message: `a label ${name} is added twice; remove one` })
      else labels.set(name, expression)
    }
    return {
      config: { labels: [...labels].map(([name, expression]) => ({ name, expression })) },
      problems,
    }
  },
  apply: () => import('./apply.ts'),
})
