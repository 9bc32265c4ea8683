/** Numbers of the fields of proto/decisions.proto, from its descriptors, for the writer by hand. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { BlockSchema, DecisionSchema } from '../../proto/gen/decisions_pb.ts'

type Numbers<Message> = {
  readonly [Field in keyof Message as Exclude<Field, `$${string}`>]-?: number
}

function numbersOf<Schema extends DescMessage>(schema: Schema): Numbers<MessageShape<Schema>> {
  const entries = schema.fields.map(({ localName, number }) => [localName, number])
  return Object.fromEntries(entries) as Numbers<MessageShape<Schema>>
}

export const blockFields = numbersOf(BlockSchema)
export const decisionFields = numbersOf(DecisionSchema)
