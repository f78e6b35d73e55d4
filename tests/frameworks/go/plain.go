// An agent in Go with nothing but the standard library.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
)

func ask(topic string) string {
	body, _ := json.Marshal(map[string]any{
		"model":    "gpt-4o-mini",
		"messages": []map[string]string{{"role": "user", "content": "Say something about " + topic}},
	})
	request, _ := http.NewRequest("POST", os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
	request.Header.Set("content-type", "application/json")
	request.Header.Set("authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer response.Body.Close()
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	json.NewDecoder(response.Body).Decode(&answer)
	return answer.Choices[0].Message.Content
}

func main() {
	fmt.Println(ask("ants"))
	topics := []string{"bees", "cats", "dogs", "eels"}
	said := make([]string, len(topics))
	var waiting sync.WaitGroup
	for number, topic := range topics {
		waiting.Add(1)
		go func(number int, topic string) {
			defer waiting.Done()
			said[number] = ask(topic)
		}(number, topic)
	}
	waiting.Wait()
	fmt.Println(said)
	fmt.Println(ask("all of " + fmt.Sprint(said)))
}
