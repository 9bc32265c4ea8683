/** Field numbers of proto/decisions.proto for the hand-written encoder, from the generated descriptors. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import {
  AttemptSchema,
  BlockSchema,
  DecisionSchema,
  DetailSchema,
  HeaderValueSchema,
  NoteSchema,
  PlannedStepSchema,
  PlanSchema,
} from '../../../proto/gen/decisions_pb.ts'

type Numbers<Message> = {
  readonly [Field in keyof Message as Exclude<Field, `$${string}`>]-?: number
}

function numbersOf<Schema extends DescMessage>(schema: Schema): Numbers<MessageShape<Schema>> {
  const entries = schema.fields.map(({ localName, number }) => [localName, number])
  return Object.fromEntries(entries) as Numbers<MessageShape<Schema>>
}

export const blockFields = numbersOf(BlockSchema)
export const decisionFields = numbersOf(DecisionSchema)
export const planFields = numbersOf(PlanSchema)
export const stepFields = numbersOf(PlannedStepSchema)
export const headerFields = numbersOf(HeaderValueSchema)
export const noteFields = numbersOf(NoteSchema)
export const attemptFields = numbersOf(AttemptSchema)
const { name, text, number } = DetailSchema.field
export const detailFields = { name: name.number, text: text.number, number: number.number }
