import { answerRules, mapContent, type ResponseTexts } from '../../mask/texts.ts'

export const messagesTexts: ResponseTexts = {
  field: 'content',
  map: (value, reading) => mapContent(value, reading, answerRules),
}
