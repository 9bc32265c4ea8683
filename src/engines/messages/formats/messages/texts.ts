import { mapContent, type ResponseTexts, responseRules } from '../../mask/texts.ts'

export const messagesTexts: ResponseTexts = {
  field: 'content',
  map: (value, reading) => mapContent(value, reading, responseRules),
}
