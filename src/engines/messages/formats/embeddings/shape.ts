/** The shape of the fields that translations read. */
import { boolean, number, object, text } from '../../common/shape.ts'

export const embeddingsShape = object({
  dimensions: number,
  encoding_format: text,
  task_type: text,
  title: text,
  auto_truncate: boolean,
  input_type: text,
  truncate: text,
  normalize: boolean,
})
